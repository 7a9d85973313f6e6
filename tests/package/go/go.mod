module lib

go 1.19
