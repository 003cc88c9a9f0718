package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestScrapeTokenNeedsNoPrices: the token counts whatever other flags there are.
func TestScrapeTokenNeedsNoPrices(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := &upCmd{}
	parseAs(t, up.verb(), "--scrape-token", file)
	o, err := up.options()
	if err != nil || o.ScrapeToken != "0123456789abcdef0123" {
		t.Errorf("got %q, %v", o.ScrapeToken, err)
	}
}
