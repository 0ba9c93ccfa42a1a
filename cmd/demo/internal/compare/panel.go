package compare

import (
	"fmt"
	"slices"
	"time"

	charts "github.com/go-analyze/charts"
)

// A panel is one small chart: how many started within the last second, over time, and how many may.
type panel struct {
	title, verdict string
	tone           tone
	counts         []int
	limit          int // 0: none
	top            int // of the scale
	end            time.Duration
}

const sample = 50 * time.Millisecond

// panels of a scene: what came, and what each limiter made of it.
func (sc scene) panels(s settings) []panel {
	everybody := sc.came()
	panels := []panel{{
		title: "What came", verdict: fmt.Sprintf("%d in a second, %d in all", everybody.Peak(time.Second), len(sc.arrivals)),
		tone: came, counts: everybody.Recent(time.Second, sample, sc.end),
	}}
	top := s.limit * 5 / 2
	for _, r := range sc.results {
		p := panel{title: r.name, verdict: r.verdict(s), tone: fine, limit: r.law(s), counts: r.Recent(time.Second, sample, sc.end)}
		if r.broke(s) {
			p.tone = wrong
		}
		top = max(top, r.law(s)*5/4, r.peak*5/4)
		panels = append(panels, p)
	}
	for i := range panels {
		panels[i].top, panels[i].end = top, sc.end
	}
	for panels[0].top < everybody.Peak(time.Second) { // often far beyond: a scale of its own
		panels[0].top *= 2
	}
	return panels
}

// draw paints the panel into a box of its own.
func (p panel) draw(to *charts.Painter) error {
	to.Text(p.title, 6, 18, 0, text(11, ink))
	to.Text(p.verdict, 6, 35, 0, text(9, p.tone))
	counts, labels := make([]float64, len(p.counts)), make([]string, len(p.counts))
	for i, n := range p.counts {
		counts[i] = float64(n)
		labels[i] = (time.Duration(i) * sample).String()
	}
	series, colours := [][]float64{counts}, []charts.Color{p.tone.light}
	if p.limit > 0 { // below the counts, so that what sticks out is seen
		series = [][]float64{slices.Repeat([]float64{float64(p.limit)}, len(counts)), counts}
		colours = []charts.Color{bound.light, p.tone.light}
	}
	small := text(8, faint)
	err := to.Child(charts.PainterPaddingOption(charts.NewBox(0, 44, 0, 0))).LineChart(charts.LineChartOption{
		Theme: charts.GetTheme(charts.ThemeLight).WithBackgroundColor(paper.light).WithTextColor(faint.light).
			WithXAxisColor(rule.light).WithYAxisColor(rule.light).WithAxisSplitLineColor(rule.light).
			WithSeriesColors(colours),
		Padding:    charts.NewBox(4, 4, 12, 0),
		SeriesList: charts.NewSeriesListLine(series),
		Legend:     charts.LegendOption{Show: charts.Ptr(false)},
		XAxis:      charts.XAxisOption{Labels: labels, LabelFontStyle: small, LabelCount: int(p.end/time.Second) + 1},
		YAxis: []charts.YAxisOption{{
			Min: charts.Ptr(0.0), Max: charts.Ptr(float64(p.top)), LabelCount: 6, LabelFontStyle: small,
			ValueFormatter: func(v float64) string { return fmt.Sprintf("%.0f", v) },
		}},
		FillArea: charts.Ptr(true), FillOpacity: 48, LineStrokeWidth: 1.5,
		Symbol: charts.Symbol{Shape: charts.SymbolNone},
	})
	if err != nil {
		return fmt.Errorf("the chart %q cannot be drawn: %w", p.title, err)
	}
	return nil
}
