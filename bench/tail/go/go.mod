module thrum/bench/tail/go

go 1.19
