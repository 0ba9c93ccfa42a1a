package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dashboard is what is looked at of grafana.json.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
			Datasource *datasource
		}
	}
	Panels []panel
}

type datasource struct{ Type, UID string }

type panel struct {
	ID          int
	Type, Title string
	Datasource  *datasource
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		RefID, Expr string
		Datasource  *datasource
	}
}

func readDashboard(t testing.TB) dashboard {
	data, err := os.ReadFile("grafana.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(data, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

func TestTheDashboardImports(t *testing.T) {
	d := readDashboard(t)
	require.NotEmpty(t, d.Title)
	require.NotEmpty(t, d.UID)
	require.GreaterOrEqual(t, d.SchemaVersion, 36, "datasources are objects since then")
	require.Equal(t, "datasource", d.Templating.List[0].Name)
	require.Equal(t, "datasource", d.Templating.List[0].Type)
	require.Equal(t, "prometheus", d.Templating.List[0].Query)
	chosen := &datasource{Type: "prometheus", UID: "${datasource}"}
	require.Equal(t, "limiter", d.Templating.List[1].Name)
	require.Equal(t, chosen, d.Templating.List[1].Datasource)

	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		require.Positive(t, p.ID)
		require.False(t, ids[p.ID], "id %d twice", p.ID)
		ids[p.ID] = true
		require.NotEmpty(t, p.Title)
		g := p.GridPos
		require.True(t, g.X >= 0 && g.Y >= 0 && g.W > 0 && g.H > 0 && g.X+g.W <= 24, "%s stands at %+v", p.Title, g)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "under %s", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.Equal(t, chosen, p.Datasource, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		refs := make(map[string]bool)
		for _, target := range p.Targets {
			require.Equal(t, chosen, target.Datasource, p.Title)
			require.False(t, refs[target.RefID], "%s: %q twice", p.Title, target.RefID)
			refs[target.RefID] = true
		}
	}
}

var metricName = regexp.MustCompile(`\bsluice_\w+`)

// A dashboard or an alert that asks for a metric that is not there shows nothing, and says nothing.
func TestWhatIsAskedForIsThere(t *testing.T) {
	there := make(map[string]bool)
	for _, f := range gather(t, full(t)) {
		if f.GetType().String() == "HISTOGRAM" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				there[f.GetName()+suffix] = true
			}
			continue
		}
		there[f.GetName()] = true
	}
	shown := make(map[string]bool)
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			require.NotEmpty(t, names, p.Title)
			for _, name := range names {
				require.True(t, there[name], "%s asks for %s", p.Title, name)
				shown[name] = true
			}
		}
	}
	require.Equal(t, there, shown, "and all that is there is shown")
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range metricName.FindAllString(string(data), -1) {
			require.True(t, there[name], "%s asks for %s", file, name)
		}
	}
}

func TestTheDashboardsQueriesParse(t *testing.T) {
	variables := strings.NewReplacer("$limiter", ".*", "$__rate_interval", "5m")
	var rules []map[string]string
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			require.NotContains(t, expr, "$", p.Title)
			rules = append(rules, map[string]string{"record": fmt.Sprintf("panel:%d:%s", p.ID, target.RefID), "expr": expr})
		}
	}
	file := filepath.Join(t.TempDir(), "queries.yaml") // JSON is YAML
	data, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	out := promtool(t, "check", "rules", file)
	require.Contains(t, out, fmt.Sprintf("%d rules found", len(rules)))
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	require.Contains(t, promtool(t, "check", "rules", "alerts.yaml"), "3 rules found")
	require.Contains(t, promtool(t, "test", "rules", "alerts_test.yaml"), "SUCCESS")
}

// promtool runs Prometheus' own tool, if it is installed. With SLUICE_TEST_PROMTOOL=required a missing one fails.
func promtool(t testing.TB, args ...string) string {
	path, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("SLUICE_TEST_PROMTOOL") != "required" {
		t.Skip("promtool is not installed")
	}
	require.NoError(t, err)
	out, err := exec.Command(path, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
