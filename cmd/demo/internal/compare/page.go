package compare

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	charts "github.com/go-analyze/charts"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

type pageScene struct {
	Title, About string
	Panels       []template.HTML
	Heads        []string
	Rows         []pageRow
}

type pageRow struct {
	Name  string
	Cells []string
	Broke bool
}

// page is one file with everything in it. Each panel is a picture of its own, so that they stand one below the other on a
// phone.
func page(scenes []scene, s settings) ([]byte, error) {
	data := struct {
		Question string
		Style    template.CSS
		Limit    int
		Burst    int
		Wait     string
		Scenes   []pageScene
	}{Question: question(s), Style: template.CSS(variables()), Limit: s.limit, Burst: s.burst, Wait: s.wait.String()}
	for _, sc := range scenes {
		ps := pageScene{Title: sc.title, About: sc.about, Heads: heads[1:]}
		for _, p := range sc.panels(s) {
			svg, err := p.svg()
			if err != nil {
				return nil, err
			}
			ps.Panels = append(ps.Panels, svg)
		}
		for _, r := range sc.results {
			ps.Rows = append(ps.Rows, pageRow{r.name, r.cells(s)[1:], r.broke(s)})
		}
		data.Scenes = append(data.Scenes, ps)
	}
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, data)
	return out.Bytes(), err
}

// svg is the panel alone. What it shows stands in its title too, for who cannot see it.
func (p panel) svg() (template.HTML, error) {
	const w, h = 320, 200
	painter := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: w, Height: h})
	if err := p.draw(painter); err != nil {
		return "", err
	}
	drawn, err := painter.Bytes()
	head := fmt.Sprintf(` role="img"><title>%s: %s</title>`, template.HTMLEscapeString(p.title), template.HTMLEscapeString(p.verdict))
	return template.HTML(toned(strings.Replace(string(drawn), ">", head, 1))), err
}
