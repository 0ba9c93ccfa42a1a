package main

import (
	"fmt"
	"io"
)

func help(w io.Writer) {
	fmt.Fprint(w, `Worker takes jobs from an Asynq queue and posts them to a service that has a quota.

  worker -stub 127.0.0.1:9000 -quota 50/s     something to post to, with a quota
  worker -rate 45/s -tenants acme=20/s        the worker; start as many as you like
  worker -produce 1000 -tenants acme=20/s     jobs for it

A rate is a number and a unit: 50/s, 300/min, 1/250ms, unlimited. All workers of one Redis share the
rates, so give them the same ones. Each flag has an environment variable, WORKER_TENANT_RATE for
-tenant-rate; the flag beats it.

The exit status is 0 after SIGTERM or Ctrl-C, 2 for a bad setting, else 1.

`)
	fs, _ := define(&config{})
	fs.SetOutput(w)
	fs.PrintDefaults()
}
