package compare

import (
	"fmt"
	"strings"

	charts "github.com/go-analyze/charts"
)

const (
	width       = 960
	columns     = 3
	panelHeight = 200
	headHeight  = 76 // of the picture
	sceneHeight = 60 // of a scene's own title
	margin      = 16
)

// picture draws the scenes one below the other, as "svg" or "png".
func picture(format string, scenes []scene, s settings) ([]byte, error) {
	rows := (1 + len(limiters) + columns - 1) / columns
	each := sceneHeight + rows*panelHeight
	height := headHeight + len(scenes)*each + margin
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: format, Width: width, Height: height})
	p.FilledRect(0, 0, width, height, paper.light, paper.light, 0)
	head(p, s)
	for i, sc := range scenes {
		top := headHeight + i*each
		p.Text(sc.title, margin+6, top+26, 0, text(13, ink))
		p.Text(sc.about+".", margin+6, top+46, 0, text(10, faint))
		for k, panel := range sc.panels(s) {
			x, y := margin+k%columns*(width-2*margin)/columns, top+sceneHeight+k/columns*panelHeight
			box := charts.NewBox(x, y, x+(width-2*margin)/columns, y+panelHeight)
			if err := panel.draw(p.Child(charts.PainterBoxOption(box))); err != nil {
				return nil, err
			}
		}
	}
	drawn, err := p.Bytes()
	if err != nil || format != charts.ChartOutputSVG {
		return drawn, err
	}
	svg := strings.Replace(string(drawn), ">", fmt.Sprintf(` width="%d" height="%d" role="img"><title>%s</title><style>%s</style>`,
		width, height, question(s), variables()), 1)
	return []byte(toned(svg) + "\n"), nil
}

// question is what the picture answers.
func question(s settings) string {
	return fmt.Sprintf("The limit is %d starts a second. What do five limiters let through?", s.limit)
}

// head says what is shown, for somebody who sees nothing but the picture.
func head(p *charts.Painter, s settings) {
	p.Text(question(s), margin+6, 38, 0, text(16, ink))
	x := margin + 6
	for _, e := range []struct {
		fill, edge charts.Color
		says       string
	}{
		{fine.light, fine.light, "starts within the last second"},
		{wrong.light, wrong.light, "the same, where the limit is broken"},
		{bound.light.WithAlpha(48), bound.light, fmt.Sprintf("what is allowed: %d, and a bucket's burst of %d", s.limit, s.burst)},
	} {
		p.FilledRect(x, 54, x+14, 64, e.fill, e.edge, 1)
		p.Text(e.says, x+20, 64, 0, text(9, ink))
		x += 44 + p.MeasureText(e.says, 0, text(9, ink)).Width()
	}
}

func text(size float64, t tone) charts.FontStyle {
	return charts.FontStyle{FontSize: size, FontColor: t.light}
}
