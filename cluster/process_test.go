package cluster

const envWork = "SLUICE_TEST_WORK"

var workers = map[string]func() int{}
