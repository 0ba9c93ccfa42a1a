package queuerun

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice/cmd/demo/internal/store"
)

func TestScreenWhereNobodyLooks(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, 10)
	s.show(5)
	s.close()
	require.Empty(t, out.String())

	log := &store.Log{To: s.logger()}
	log.Info("Starting processing")
	require.Empty(t, out.String())
	log.Error("Dequeue error: ", "gone")
	log.Error("Dequeue error: ", "gone")
	require.Equal(t, 1, strings.Count(out.String(), "asynq: Dequeue error: gone"), out.String())
}

func TestChart(t *testing.T) {
	var out bytes.Buffer
	starts := append(make([]time.Duration, 56), every(500*ms, 4)...) // 58 in the first second, 2 in the next
	writeChart(&out, []account{{kind: limited, starts: starts}, {kind: free, starts: []time.Duration{2500 * ms}}})
	require.Equal(t, `
   from  limited: starts in each 1s          free: starts in each 1s
     0s  ████████████████████████████ 58
     1s  █ 2
     2s                                      ████████████████████████████ 1
`, "\n"+out.String())

	out.Reset()
	writeChart(&out, []account{{kind: limited}})
	require.Equal(t, "   from  limited: starts in each 1s\n     0s\n", out.String())
}

func TestChartOfALongRunFits(t *testing.T) {
	var out bytes.Buffer
	writeChart(&out, []account{{kind: limited, starts: every(time.Second, 3600)}})
	require.LessOrEqual(t, strings.Count(out.String(), "\n"), chartRows+1)
	require.Contains(t, out.String(), "limited: starts in each 2m0s")
}
