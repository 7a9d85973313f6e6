module thrum/bench/peers/go

go 1.19
