package cluster

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
	"github.com/fadf4e53/sluice/sluicetest"
)

// The suite that every kind of Limiter goes through, on a real server and on the embedded one.
func TestContract(t *testing.T) {
	for kind, addr := range map[string]string{
		"redis-server": redistest.StartServer(t).Addr,
		"embedded":     miniredis.RunT(t).Addr(),
	} {
		t.Run(kind, func(t *testing.T) {
			client := dial(t, addr)
			sluicetest.Run(t, sluicetest.Kind{RealTime: true, New: func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
				return made(t, client, Config{Rate: rate, Burst: burst, Horizon: longest})
			}})
		})
	}
}
