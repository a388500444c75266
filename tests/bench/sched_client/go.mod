module sched_client

go 1.25.0
