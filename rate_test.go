package sluice_test

import (
	"encoding/json"
	"flag"
	"io"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

const day = 24 * time.Hour

func TestEqualRatesAreEqual(t *testing.T) {
	for _, same := range [][]sluice.Rate{
		{sluice.PerSecond(50), sluice.Per(100, 2*time.Second), sluice.Every(20 * time.Millisecond), sluice.Per(3000, time.Minute)},
		{sluice.Per(1, time.Minute), sluice.Every(time.Minute), sluice.Per(60, time.Hour), sluice.Per(1440, day)},
		{sluice.Per(10, 13*time.Second), sluice.Per(20, 26*time.Second)},
		{sluice.PerSecond(4e9), sluice.Per(4, 1)},
		{sluice.Per(math.MaxInt64, math.MaxInt64), sluice.PerSecond(1e9)},
	} {
		byRate := map[sluice.Rate]bool{}
		for _, r := range same {
			require.True(t, r.Valid(), "%v", r)
			require.Equal(t, same[0], r)
			byRate[r] = true
		}
		require.Len(t, byRate, 1, "as keys of a map")
	}
	require.NotEqual(t, sluice.PerSecond(3), sluice.Per(333_333_334, 111_111_111*time.Second))
}

func TestInvalidRates(t *testing.T) {
	for _, r := range []sluice.Rate{
		{}, sluice.PerSecond(0), sluice.PerSecond(-1), sluice.Per(1, 0), sluice.Per(1, -1), sluice.Every(0),
		sluice.Every(-time.Second), sluice.Per(-1, -1), sluice.Per(0, 0), sluice.Per(math.MinInt64, math.MinInt64),
	} {
		require.False(t, r.Valid(), "%v", r)
		require.False(t, r.IsUnlimited())
		require.Equal(t, sluice.Never, r.TimeFor(1))
		require.Zero(t, r.TimeFor(0))
		require.Zero(t, r.UnitsIn(time.Hour))
		require.Zero(t, r.PerSecond())
		_, err := r.MarshalText()
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorContains(t, err, r.String(), "the error shows the numbers")
		require.ErrorContains(t, err, "at least 1 unit")
		_, err = sluice.ParseRate(r.String())
		require.ErrorIs(t, err, sluice.ErrInvalid, "what is not Valid cannot be read either")
	}
}

func TestUnlimited(t *testing.T) {
	r := sluice.Unlimited
	require.True(t, r.Valid())
	require.True(t, r.IsUnlimited())
	require.Zero(t, r.TimeFor(math.MaxInt64))
	require.EqualValues(t, math.MaxInt64, r.UnitsIn(0))
	require.Zero(t, r.UnitsIn(-1))
	require.Equal(t, math.Inf(1), r.PerSecond())
	require.Equal(t, "unlimited", r.String())
	require.NotEqual(t, r, sluice.Per(math.MaxInt64, 1))
}

func TestTimeForAndUnitsIn(t *testing.T) {
	third := sluice.PerSecond(3)
	for _, s := range []struct {
		rate sluice.Rate
		n    int64
		time time.Duration // rounded up
	}{
		{third, 1, 333_333_334},
		{third, 2, 666_666_667},
		{third, 3, time.Second},
		{sluice.PerSecond(4e9), 1, 1},
		{sluice.PerSecond(4e9), 4, 1},
		{sluice.PerSecond(4e9), 5, 2},
		{sluice.PerSecond(1e9 + 1), 1e9 + 1, time.Second},
		{sluice.Every(10 * 365 * day), 2, 20 * 365 * day},
		{third, 0, 0},
		{third, -1, 0},
	} {
		require.Equal(t, s.time, s.rate.TimeFor(s.n), "%d at %v", s.n, s.rate)
	}
	require.EqualValues(t, 0, third.UnitsIn(333_333_333))
	require.EqualValues(t, 1, third.UnitsIn(333_333_334))
	require.EqualValues(t, 2000, sluice.Per(2000, day).UnitsIn(day))
	require.EqualValues(t, 1999, sluice.Per(2000, day).UnitsIn(day-1))
	require.Zero(t, third.UnitsIn(-time.Hour))
}

func TestRateSaturates(t *testing.T) {
	slow, fast := sluice.Every(10*365*day), sluice.Per(math.MaxInt64, 1)
	require.Equal(t, sluice.Never, slow.TimeFor(30))
	require.Equal(t, sluice.Never, slow.TimeFor(math.MaxInt64))
	require.EqualValues(t, math.MaxInt64, fast.UnitsIn(2))
	require.EqualValues(t, math.MaxInt64, fast.UnitsIn(sluice.Never))
	require.EqualValues(t, 1, fast.TimeFor(math.MaxInt64))
}

// FuzzRate compares with exact rationals.
func FuzzRate(f *testing.F) {
	for _, seed := range [][3]int64{
		{1, 1, 1}, {3, 1e9, 2}, {4e9, 1e9, 5}, {1, int64(10 * 365 * day), 1e6}, {math.MaxInt64, 1, math.MaxInt64},
		{1, math.MaxInt64, 1}, {math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64}, {-3, 5, 7}, {0, 0, 0},
		{7, 13e9, -1}, {700, 60e9, 1e15},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, n, period, x int64) {
		r := sluice.Per(n, time.Duration(period))
		require.Equal(t, n >= 1 && period >= 1, r.Valid())
		back, err := sluice.ParseRate(r.String())
		if !r.Valid() {
			require.ErrorIs(t, err, sluice.ErrInvalid)
			return
		}
		require.NoError(t, err)
		require.Equal(t, r, back, "as text: %s", r)
		if n <= math.MaxInt64/3 && period <= math.MaxInt64/3 {
			require.Equal(t, r, sluice.Per(3*n, 3*time.Duration(period)))
		}
		if x < 0 {
			require.Zero(t, r.TimeFor(x))
			require.Zero(t, r.UnitsIn(time.Duration(x)))
			return
		}
		require.Equal(t, ratio(x, period, n, true), int64(r.TimeFor(x)), "TimeFor(%d) at %s", x, r)
		units := r.UnitsIn(time.Duration(x))
		require.Equal(t, ratio(x, n, period, false), units, "UnitsIn(%d) at %s", x, r)
		if d := time.Duration(x); d < sluice.Never && units < math.MaxInt64 {
			require.LessOrEqual(t, r.TimeFor(units), d, "so many units flow in d")
			require.Greater(t, r.TimeFor(units+1), d, "and not one more")
		}
	})
}

// ratio is x·a/b, rounded up or down, or the largest int64.
func ratio(x, a, b int64, up bool) int64 {
	product := new(big.Int).Mul(big.NewInt(x), big.NewInt(a))
	q, rest := new(big.Int).QuoRem(product, big.NewInt(b), new(big.Int))
	if up && rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return q.Int64()
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]sluice.Rate{
		"50/s": sluice.PerSecond(50), "3/min": sluice.Per(3, time.Minute), "5000/h": sluice.Per(5000, time.Hour),
		"1/250ms": sluice.PerSecond(4), "10/2s": sluice.PerSecond(5), "unlimited": sluice.Unlimited,
		"2000/day": sluice.Per(2000, day), "2000/d": sluice.Per(2000, day), "7/us": sluice.Per(7, time.Microsecond),
		"7/µs": sluice.Per(7, time.Microsecond), "7/ns": sluice.Per(7, 1), "3/m": sluice.Per(3, time.Minute),
		"1/1h30m": sluice.Every(90 * time.Minute), " 50 / s\n": sluice.PerSecond(50), "4/second": sluice.PerSecond(4),
		"9223372036854775807/s": sluice.PerSecond(math.MaxInt64), "6/1.5s": sluice.PerSecond(4),
	} {
		got, err := sluice.ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestRateString(t *testing.T) {
	for want, r := range map[string]sluice.Rate{
		"50/s": sluice.PerSecond(50), "4/s": sluice.Every(250 * time.Millisecond), "5/min": sluice.Every(12 * time.Second),
		"100/min": sluice.Per(100, time.Minute), "1/h": sluice.Every(time.Hour), "3/7ms": sluice.Per(3, 7*time.Millisecond),
		"1/43.2s": sluice.Per(2000, day), "1/1.3s": sluice.Per(10, 13*time.Second), "4000000000/s": sluice.PerSecond(4e9),
		"0/s": {}, "-5/s": sluice.PerSecond(-5), "5/0s": sluice.Per(5, 0),
	} {
		require.Equal(t, want, r.String())
	}
}

func TestParseRateTellsWhatIsWrong(t *testing.T) {
	for _, s := range []struct{ text, value, rule string }{
		{"", `""`, "must be units per time"},
		{"fast", `"fast"`, `"50/s"`},
		{"50", `"50"`, "must be units per time"},
		{"UNLIMITED", `"UNLIMITED"`, "unlimited"},
		{"x/s", `"x"`, "whole number"},
		{"1.5/s", `"1.5"`, "whole number"},
		{"NaN/s", `"NaN"`, "whole number"},
		{"/s", `""`, "whole number"},
		{"9223372036854775808/s", "9223372036854775808", "to 9223372036854775807"},
		{"0/s", "0", "at least 1"},
		{"-3/s", "-3", "at least 1"},
		{"3/fortnight", `"fortnight"`, "unit"},
		{"3/", `""`, "unit"},
		{"3/5", `"5"`, "duration like 250ms"},
		{"3/0s", `"0s"`, "at least 1ns"},
		{"3/-1s", `"-1s"`, "at least 1ns"},
		{"3/s/s", `"s/s"`, "unit"},
		{"3/300000000h", "300000000h", "duration"},
	} {
		r, err := sluice.ParseRate(s.text)
		require.ErrorIs(t, err, sluice.ErrInvalid, s.text)
		require.ErrorContains(t, err, s.value)
		require.ErrorContains(t, err, s.rule)
		require.Zero(t, r)
	}
}

func TestRateAsText(t *testing.T) {
	type config struct {
		Rate   sluice.Rate            `json:"rate"`
		ByUser map[sluice.Rate]string `json:"by"`
	}
	in := config{sluice.Per(3, time.Minute), map[sluice.Rate]string{sluice.Unlimited: "root"}}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"rate":"3/min","by":{"unlimited":"root"}}`, string(text))
	var out config
	require.NoError(t, json.Unmarshal(text, &out))
	require.Equal(t, in, out)

	kept := config{Rate: sluice.PerSecond(7)}
	require.ErrorIs(t, json.Unmarshal([]byte(`{"rate":"0/s"}`), &kept), sluice.ErrInvalid)
	require.Equal(t, sluice.PerSecond(7), kept.Rate, "after an error it keeps its value")

	var flagged sluice.Rate
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.TextVar(&flagged, "rate", sluice.PerSecond(50), "how fast")
	require.NoError(t, flags.Parse(nil))
	require.Equal(t, sluice.PerSecond(50), flagged)
	require.NoError(t, flags.Parse([]string{"-rate", "1/250ms"}))
	require.Equal(t, sluice.PerSecond(4), flagged)
	require.ErrorContains(t, flags.Parse([]string{"-rate", "fast"}), "fast")

	require.ErrorIs(t, (*sluice.Rate)(nil).UnmarshalText([]byte("1/s")), sluice.ErrInvalid)
}

func TestRatePerSecondIsForPeople(t *testing.T) {
	require.InDelta(t, 50, sluice.PerSecond(50).PerSecond(), 1e-9)
	require.InDelta(t, 2000.0/86400, sluice.Per(2000, day).PerSecond(), 1e-12)
}
