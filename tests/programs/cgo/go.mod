module threads

go 1.19
