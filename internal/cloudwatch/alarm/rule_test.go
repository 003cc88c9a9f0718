package alarm

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The functions and examples on the CloudWatch User Guide's page "Create a composite alarm" and in
// PutCompositeAlarm's AlarmRule.
func TestRule(t *testing.T) {
	states := map[string]State{
		"CPU":       Alarming,
		"Disk":      OK,
		"Network":   OK,
		"New":       InsufficientData,
		"two words": Alarming,
		"arn:aws:cloudwatch:us-east-1:000000000000:alarm:CPU": Alarming,
	}
	for text, want := range map[string]State{
		"TRUE": Alarming, "FALSE": OK, "NOT FALSE": Alarming,
		"ALARM(CPU)": Alarming, `ALARM("CPU")`: Alarming, "OK(CPU)": OK, "OK(Disk)": Alarming,
		"INSUFFICIENT_DATA(New)": Alarming, "INSUFFICIENT_DATA(CPU)": OK,
		"ALARM(CPU) AND ALARM(Disk)":                                 OK,
		"ALARM(CPU) AND NOT ALARM(Disk)":                             Alarming,
		"(ALARM(CPU) OR ALARM(Disk)) AND OK(Network)":                Alarming,
		"ALARM(Disk) AND TRUE OR ALARM(CPU)":                         Alarming,
		"ALARM(CPU) OR ALARM(CPU) AND ALARM(Disk)":                   Alarming,
		"NOT(ALARM(CPU) OR ALARM(Disk))":                             OK,
		"NOT NOT ALARM(CPU)":                                         Alarming,
		"\n ALARM ( \"two words\" )\n":                               Alarming,
		"ALARM( two words )":                                         Alarming,
		"ALARM(arn:aws:cloudwatch:us-east-1:000000000000:alarm:CPU)": Alarming,
		"AT_LEAST(2, OK, (CPU, Disk, Network))":                      Alarming,
		"AT_LEAST(3, OK, (CPU, Disk, Network))":                      OK,
		"AT_LEAST(1, NOT OK, (CPU, Disk, Network))":                  Alarming,
		`AT_LEAST(50%, ALARM, ("CPU", "Disk"))`:                      Alarming,
		`AT_LEAST(51%, ALARM, ("CPU", "Disk")) OR FALSE`:             OK,
	} {
		r, err := ParseRule(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := r.Eval(func(name string) State { return states[name] }); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestRuleErrors(t *testing.T) {
	for text, says := range map[string]string{
		"":                              "the rule is empty",
		strings.Repeat("x", maxRule+1):  "at most 10240",
		strings.Repeat("(", maxDepth+1): "deeper than 64",
		"TRUE" + strings.Repeat(" OR TRUE", maxElements): "more than 500 elements",
		"ALARM":                   `at character 6: "(" is missing`,
		"ALARM()":                 "an alarm's name is missing",
		`ALARM("")`:               "name is empty",
		`ALARM("x)`:               "not closed by a quotation mark",
		`ALARM(x"y")`:             `")" is missing`,
		"ALARM(x":                 `")" is missing`,
		"ALARM(x) ALARM(y)":       "at character 10: AND or OR is missing",
		"ALARM(x) AND":            "is missing",
		"alarm(x)":                "at character 1: ALARM, OK",
		"NOT":                     "is missing",
		"AT_LEAST(3, OK, (a, b))": "a number from 1 to 2, not 3",
		"AT_LEAST(0, OK, (a, b))": "not 0",
		"AT_LEAST(x, OK, (a, b))": "a number is missing",
		"AT_LEAST(1, GOOD, (a))":  "ALARM, OK or INSUFFICIENT_DATA is missing",
		"AT_LEAST(1, OK, a)":      `"(" is missing`,
	} {
		if _, err := ParseRule(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: got %v, want %s", text, err, says)
		}
	}
	var all []string
	for i := range maxChildren + 1 {
		all = append(all, "ALARM(a"+strings.Repeat("x", i)+")")
	}
	if _, err := ParseRule(strings.Join(all, " OR ")); err == nil || !strings.Contains(err.Error(), "101 alarms") {
		t.Errorf("101 alarms: %v", err)
	}
}

func TestCycle(t *testing.T) {
	children := map[string][]string{"a": {"b", "m"}, "b": {"c", "m"}, "c": {"d"}, "x": {"y"}, "y": {"x"}}
	of := func(name string) []string { return children[name] }
	for _, c := range []struct {
		name, rule string
		want       []string
	}{
		{"d", "ALARM(a) OR ALARM(m)", []string{"d", "a", "b", "c", "d"}},
		{"e", "ALARM(a) OR ALARM(m)", nil},
		{"e", "ALARM(a) AND OK(e)", []string{"e", "e"}},
		{"z", "ALARM(x)", nil}, // a cycle, but without this alarm
		{"z", "TRUE", nil},
	} {
		r, err := ParseRule(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Cycle(c.name, of); !slices.Equal(got, c.want) {
			t.Errorf("%s is %s: got %v, want %v", c.name, c.rule, got, c.want)
		}
	}
	r, _ := ParseRule(`ALARM("a") AND NOT OK(b) OR ALARM(a)`)
	if got := r.Children(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the children are %v", got)
	}
}

// The sentence has the form that the page "Alarm events and EventBridge" shows for composite alarms.
func TestCompositeReason(t *testing.T) {
	const want = "arn:aws:cloudwatch:us-east-1:000000000000:alarm:CPU transitioned to ALARM at Saturday 21 November, 2026 12:00:30 UTC"
	got := CompositeReason("arn:aws:cloudwatch:us-east-1:000000000000:alarm:CPU", Alarming, now.In(time.FixedZone("", 3600)))
	if got != want {
		t.Errorf("got %s", got)
	}
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{
		`ALARM("x") AND NOT OK(y)`, "AT_LEAST(50%, NOT ALARM, (a, b)) OR (TRUE AND FALSE)", "INSUFFICIENT_DATA( a b )", `OK("a) OR (")`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		asked := map[string]bool{}
		state := r.Eval(func(name string) State { asked[name] = true; return OK })
		if state != OK && state != Alarming {
			t.Fatalf("%q gives %q", text, state)
		}
		for name := range asked {
			if !slices.Contains(r.Children(), name) {
				t.Fatalf("%q asks for %q, which is none of its children", text, name)
			}
		}
	})
}
