package serve

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// shots is where the pictures of the page go; "": nowhere.
var shots = os.Getenv("SLUICE_DEMO_SHOTS")

// browser returns a chromium, and what it complained of.
func browser(t *testing.T) (ctx context.Context, complaints func() []string) {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const says = "no chromium: apt-get install chromium, or this page is not tested in a browser"
		if os.Getenv("CI") == "true" {
			t.Fatal(says)
		}
		t.Skip(says)
	}
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1200, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)

	var mu sync.Mutex // guards heard
	var heard []string
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			heard = append(heard, "exception: "+e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			heard = append(heard, "console: "+string(e.Type))
		case *log.EventEntryAdded:
			heard = append(heard, "log: "+e.Entry.Text)
		}
	}))
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), heard...)
	}
}

// eval returns what an expression is on the page.
func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return v
}

// until waits for an expression to be true on the page.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	_, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(30*time.Second)))
	if err != nil {
		require.NoError(t, err, "%s; the last frame: %s", expression, eval[string](t, ctx, `JSON.stringify(frames.at(-1))`))
	}
}

// prefer sets the reader's scheme.
func prefer(t *testing.T, ctx context.Context, scheme string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(t, err)
}

func shot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if shots == "" {
		return
	}
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(shots, name+".png"), picture, 0o644))
}

func TestPage(t *testing.T) {
	ctx, complaints := browser(t)
	url, _ := start(t)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	until(t, ctx, `document.querySelector("#connection").textContent === "Live."`)
	until(t, ctx, `Number(document.querySelector("#starts-all").textContent) > 0`)

	t.Run("every control has a name", func(t *testing.T) {
		require.Empty(t, eval[[]string](t, ctx, `[...document.querySelectorAll("input")].filter(i => !i.labels.length).map(i => i.id)`))
		require.Empty(t, eval[[]string](t, ctx, `[...document.querySelectorAll("button")].filter(b => !b.textContent.trim()).map(b => b.id)`))
		require.Empty(t, eval[[]string](t, ctx, `[...document.querySelectorAll("svg")].filter(s => !s.getAttribute("aria-label")).map(s => s.id)`))
	})

	t.Run("the keyboard reaches all, and shows where it is", func(t *testing.T) {
		for _, id := range []string{"rate", "burst", "capacity", "arrivals", "drop", "busy"} {
			require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent(kb.Tab)))
			require.Equal(t, id, eval[string](t, ctx, `document.activeElement.id`))
			require.Equal(t, "solid 3px", eval[string](t, ctx,
				`(s => s.outlineStyle + " " + s.outlineWidth)(getComputedStyle(document.activeElement))`), id)
		}
	})

	t.Run("a button drops 500 jobs, by the keyboard", func(t *testing.T) {
		before := eval[int](t, ctx, `frames.at(-1).arrived`)
		require.NoError(t, chromedp.Do(ctx, chromedp.Focus("#drop"), chromedp.KeyEvent(kb.Enter)))
		until(t, ctx, fmt.Sprintf(`frames.at(-1).arrived >= %d`, before+500))
		until(t, ctx, `document.querySelector("#said").textContent === "500 jobs dropped."`)
		until(t, ctx, `frames.at(-1).deferred > 100 && document.querySelector("#deferred-all").textContent !== "0"`)
		require.Greater(t, eval[int](t, ctx, `frames.at(-1).line`), 200)
		until(t, ctx, `document.querySelector("#line path").getAttribute("d").length > 100`)
	})

	t.Run("a slider turns the running limit within a second", func(t *testing.T) {
		// Counted on the page, in frames, of which ten come a second.
		eval[any](t, ctx, `(() => {
			frames.since = 0;
			document.querySelector("#rate").addEventListener("input", () => { frames.since = 0; }, { once: true });
			source.addEventListener("message", (event) => {
				frames.since++;
				if (JSON.parse(event.data).rate > 50) frames.took ??= frames.since;
			});
		})()`)
		require.NoError(t, chromedp.Do(ctx, chromedp.Focus("#rate"), chromedp.KeyEvent(kb.PageUp)))
		until(t, ctx, `frames.took > 0`)
		require.LessOrEqual(t, eval[int](t, ctx, `frames.took`), 10)
		rate := eval[int](t, ctx, `frames.at(-1).rate`)
		require.Equal(t, fmt.Sprint(rate), eval[string](t, ctx, `document.querySelector("#rate-value").textContent`))
		until(t, ctx, `frames.at(-1).startsNow > 75`) // far more than rate and burst, 60, were before
	})

	t.Run("a button has the service behind answer 429", func(t *testing.T) {
		shot(t, ctx, "serve-light")
		require.NoError(t, chromedp.Do(ctx, chromedp.Click("#busy")))
		until(t, ctx, `frames.at(-1).told > 0`)
		until(t, ctx, `frames.at(-1).startsNow === 0 && frames.at(-1).line > 0`)
		until(t, ctx, `frames.at(-1).busy === 0 && frames.at(-1).startsNow > 0`)
	})

	t.Run("a phone has no sideways scroll, dark or light", func(t *testing.T) {
		for _, scheme := range []string{"light", "dark"} {
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile)))
			prefer(t, ctx, scheme)
			require.LessOrEqual(t, eval[int](t, ctx, `document.documentElement.scrollWidth`), 360)
			until(t, ctx, `document.querySelector("#flow path") !== null`)
			shot(t, ctx, "serve-phone-"+scheme)
		}
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1200, 900)))
		shot(t, ctx, "serve-dark")
	})

	t.Run("text can be read on its ground", func(t *testing.T) {
		for _, scheme := range []string{"light", "dark"} {
			prefer(t, ctx, scheme)
			for _, pair := range [][2]string{{"ink", "paper"}, {"faint", "paper"}, {"faint", "panel"}, {"on-fine", "fine"}, {"wrong", "paper"}} {
				ratio := eval[float64](t, ctx, fmt.Sprintf(contrast, pair[0], pair[1]))
				require.GreaterOrEqual(t, ratio, 4.5, "%s on %s, %s", pair[0], pair[1], scheme)
			}
		}
	})

	require.Empty(t, complaints(), "the console")
	eval[any](t, ctx, `console.error("a complaint is heard")`)
	require.Equal(t, []string{"console: error"}, complaints())
}

// contrast is WCAG's ratio of two of the page's colours.
const contrast = `((a, b) => {
  const light = (name) => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim().slice(1);
    const [r, g, b] = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [hi, lo] = [light(a), light(b)].sort((x, y) => y - x);
  return (hi + 0.05) / (lo + 0.05);
})(%q, %q)`

// When the demo ends, the page says so.
func TestPageSaysThatTheDemoHasEnded(t *testing.T) {
	ctx, _ := browser(t)
	url, end := start(t)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	until(t, ctx, `document.querySelector("#connection").textContent === "Live."`)
	end()
	until(t, ctx, `document.querySelector("#connection").textContent.startsWith("The demo has ended")`)
	require.True(t, strings.Contains(eval[string](t, ctx, `document.querySelector("#connection").className`), "lost"))
}
