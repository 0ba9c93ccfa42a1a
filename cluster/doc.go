// Package cluster is a token bucket for many processes: one limit, kept in Redis.
package cluster
