package state_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// TestServiceEvents: events keep their kinds, and those of rows that were written before there were any have none.
func TestServiceEvents(t *testing.T) {
	var row state.Service
	old := `{"ServiceName":"s","Events":[{"Id":"1","CreatedAt":"2026-01-01T00:00:00Z","Message":"(service s) has reached a steady state."}],"Deployments":null}`
	if err := json.Unmarshal([]byte(old), &row); err != nil {
		t.Fatal(err)
	}
	row.Event(state.Steady, "(service s) has reached a steady state.", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	var again state.Service
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if e := again.Events; len(e) != 2 || e[0].Kind != state.Steady || e[1].Kind != "" || *e[1].Id != "1" || *e[0].Message != *e[1].Message {
		t.Errorf("got %s", text)
	}
	if shown := again.SDKEvents(); len(shown) != 2 || *shown[1].Id != "1" {
		t.Errorf("shown are %+v", shown)
	}
}
