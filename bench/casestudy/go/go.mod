module thrum/bench/casestudy/go

go 1.19
