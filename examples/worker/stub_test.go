package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

func TestStubCountsAndRefuses(t *testing.T) {
	t.Parallel()
	s, err := newStub(sluice.Per(2, time.Hour))
	require.NoError(t, err)
	for i, want := range []int{http.StatusNoContent, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		require.Equal(t, want, w.Code, "post %d", i)
		if want == http.StatusTooManyRequests {
			require.Contains(t, []string{"1799", "1800"}, w.Header().Get("Retry-After"))
		}
	}
	require.EqualValues(t, 1, s.accepted.Load())
	require.EqualValues(t, 2, s.refused.Load())
	require.Equal(t, 25, stubBurst(sluice.PerSecond(50)))
	require.Equal(t, 1_000_000, stubBurst(sluice.Unlimited))
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7":                             7 * time.Second,
		"0":                             time.Second,
		"-1":                            time.Second,
		"":                              time.Second,
		"soon":                          time.Second,
		"99999999999999":                time.Second,
		"Wed, 02 Jan 2030 03:05:05 GMT": time.Minute,
		"Wed, 02 Jan 2030 03:00:00 GMT": time.Second,
	} {
		require.Equal(t, want, retryAfter(text, now), "%q", text)
	}
}
