package compare

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	charts "github.com/go-analyze/charts"
)

// A tone is a colour with one value on light ground and one on dark. No two have the same light one: that is how a drawn
// colour is found again.
type tone struct {
	name        string
	light, dark charts.Color
}

func hex(rgb uint32) charts.Color {
	return charts.Color{R: uint8(rgb >> 16), G: uint8(rgb >> 8), B: uint8(rgb), A: 255}
}

var (
	paper = tone{"paper", hex(0xfefefe), hex(0x0f1720)}
	ink   = tone{"ink", hex(0x17202b), hex(0xe8eef5)}
	faint = tone{"faint", hex(0x5a6675), hex(0x9dabbb)}
	rule  = tone{"rule", hex(0xe3e8ee), hex(0x273442)}
	fine  = tone{"fine", hex(0x1668c7), hex(0x66b0ff)}
	wrong = tone{"wrong", hex(0xc9302c), hex(0xff7b72)}
	came  = tone{"came", hex(0x6b7785), hex(0x9aa7b5)}
	bound = tone{"bound", hex(0x2f8f5b), hex(0x4cc38a)}

	tones = []tone{paper, ink, faint, rule, fine, wrong, came, bound}
)

// variables is the CSS that sets every tone, light and dark.
func variables() string {
	var light, dark strings.Builder
	for _, t := range tones {
		fmt.Fprintf(&light, "--%s:%s;", t.name, css(t.light))
		fmt.Fprintf(&dark, "--%s:%s;", t.name, css(t.dark))
	}
	return fmt.Sprintf(":root{color-scheme:light dark;%s}@media(prefers-color-scheme:dark){:root{%s}}", &light, &dark)
}

func css(c charts.Color) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

var drawn = regexp.MustCompile(`(stroke|fill):rgba?\((\d+),(\d+),(\d+)(?:,([\d.]+))?\)`)

// toned lets a drawn SVG follow the reader's scheme. The library writes fixed colours; behind each, the same property is
// set again by a variable, which wins where it is understood. What knows no variables keeps the light colours.
func toned(svg string) string {
	return drawn.ReplaceAllStringFunc(svg, func(m string) string {
		p := drawn.FindStringSubmatch(m)
		var rgb [3]uint8
		for i := range rgb {
			n, _ := strconv.Atoi(p[2+i]) // three digits at most, by the expression
			rgb[i] = uint8(n)
		}
		for _, t := range tones {
			if rgb != [3]uint8{t.light.R, t.light.G, t.light.B} {
				continue
			}
			s := fmt.Sprintf("%s:%s;%s:var(--%s)", p[1], css(t.light), p[1], t.name)
			if p[5] != "" {
				s += fmt.Sprintf(";%s-opacity:%s", p[1], p[5])
			}
			return s
		}
		return m
	})
}
