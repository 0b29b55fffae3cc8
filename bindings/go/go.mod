module brig

go 1.19
