package compare

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

// wellFormed reads all of it as XML.
func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// The README's picture is what the command draws today.
func TestReadmePictureIsUpToDate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "compare.svg")
	status, _, errs := call(t, "-arrivals", "edges", "-o", file)
	require.Equal(t, cli.OK, status, errs)
	drawn, err := os.ReadFile(file)
	require.NoError(t, err)
	committed, err := os.ReadFile("../../../../docs/compare.svg")
	require.NoError(t, err)
	require.True(t, bytes.Equal(committed, drawn), "docs/compare.svg is not what is drawn now: go run ./cmd/demo compare -arrivals edges -o docs/compare.svg")
}

// A picture follows the reader's scheme: every colour that is drawn has a value for dark ground too.
func TestToned(t *testing.T) {
	scenes, err := play(defaults)
	require.NoError(t, err)
	svg, err := picture("svg", scenes, defaults)
	require.NoError(t, err)
	wellFormed(t, svg)
	require.NotContains(t, string(svg), "rgb", "a colour that no tone has")
	for _, tn := range tones {
		require.Contains(t, string(svg), "var(--"+tn.name+")")
		require.Contains(t, string(svg), "--"+tn.name+":"+css(tn.dark))
	}
	require.Equal(t, `fill:#1668c7;fill:var(--fine);fill-opacity:0.188`, toned(`fill:rgba(22,104,199,0.188)`))
	require.Equal(t, `stroke:rgb(1,2,3)`, toned(`stroke:rgb(1,2,3)`), "not ours")
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	draw := func(name, arrivals string) []byte {
		file := filepath.Join(dir, name)
		status, out, errs := call(t, "-arrivals", arrivals, "-o", file)
		require.Equal(t, cli.OK, status, errs)
		require.Contains(t, out, "Drawn into "+file+".\n")
		drawn, err := os.ReadFile(file)
		require.NoError(t, err)
		return drawn
	}

	image, err := png.Decode(bytes.NewReader(draw("a.png", "edges")))
	require.NoError(t, err)
	require.Equal(t, width, image.Bounds().Dx())

	html := string(draw("a.html", "all"))
	require.Equal(t, 4*(1+len(limiters)), strings.Count(html, "<svg "))
	require.Empty(t, regexp.MustCompile(`(src|href)=|url\(|@import|<script`).FindString(html), "one file, with everything in it")
	require.Contains(t, html, `<title>Fixed window: 200 in a second = 2.0 × the limit · 0 refused</title>`)
	require.Contains(t, html, `name="viewport"`)
	require.Contains(t, html, "prefers-color-scheme:dark")
	require.NotContains(t, html, "rgb")
}

// The smallest limit, a burst far beyond it and the largest limit are drawn too.
func TestOddNumbersAreDrawn(t *testing.T) {
	for _, args := range [][]string{
		{"-limit", "1", "-burst", "1", "-wait", "1ms"},
		{"-limit", "1", "-burst", "5000"},
		{"-limit", "2000", "-arrivals", "edges"},
	} {
		file := filepath.Join(t.TempDir(), "a.svg")
		status, _, errs := call(t, append(args, "-o", file)...)
		require.Equal(t, cli.OK, status, "%v %s", args, errs)
		drawn, err := os.ReadFile(file)
		require.NoError(t, err)
		wellFormed(t, drawn)
	}
}

func TestBadFlags(t *testing.T) {
	for _, s := range []struct {
		args []string
		says string
	}{
		{[]string{"-o", "a.pdf"}, "-o a.pdf: must end in .html, .svg or .png"},
		{[]string{"-o", "a"}, "-o a: must end in .html, .svg or .png"},
		{[]string{"-arrivals", "flood"}, "must be one of all, edges, pulse, herd, steady"},
		{[]string{"-limit", "0"}, "must be a whole number from 1 to 2000"},
		{[]string{"-wait", "2"}, "must be a time with its unit, like 50ms, from 1ms to 1m0s"},
	} {
		status, out, errs := call(t, s.args...)
		require.Equal(t, cli.Usage, status, "%v", s.args)
		require.Empty(t, out)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		require.Contains(t, errs, s.says)
	}
	status, _, errs := call(t, "-arrivals", "steady", "-o", filepath.Join(t.TempDir(), "no", "such.svg"))
	require.Equal(t, cli.Broken, status)
	require.Contains(t, errs, "no such file")
}
