package metricmath

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// namedMetric parses "namespace name dimension=value …", with _ for a space in a value.
func namedMetric(text string) Metric {
	f := strings.Fields(text)
	m := Metric{Namespace: f[0], Name: f[1]}
	for _, d := range f[2:] {
		name, value, _ := strings.Cut(d, "=")
		m.Dimensions = append(m.Dimensions, Dimension{name, strings.ReplaceAll(value, "~", " ")})
	}
	return m
}

func parseSearch(t *testing.T, query string) *Search {
	t.Helper()
	e, err := Parse("SEARCH('" + query + "', 'Average', 300)")
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return e.Searches()[0]
}

// The tokens, partial, exact and composite matches, property names and Boolean operators on the CloudWatch User Guide's
// page "CloudWatch search expression syntax".
func TestSearch(t *testing.T) {
	for _, c := range []struct{ metric, finds, not string }{
		{"My CustomCount1", "count; Count; COUNT; custom; CUSTOM; 1; CustomCount; Count1; customcount1; \"CustomCount1\"; {My}; {My} count",
			"couNT; customcount; count1; ustom; \"customcount1\"; \"Custom\"; {Other} count; {My,D}"},
		{"My SDBFailure", "sdb; failure; sdbfailure; SDBFailure", "sdbf; SDBF"},
		{"My Project2-trial333", "project; 2; trial; 333; project2trial333; Project2; 2-trial", "trial33; project2"},
		{
			"My Network-Errors-2", "network/errors; network+errors; network-errors; Network_Errors; \"Network-Errors-2\"",
			"\"Network_Errors_2\"; errors-network",
		},
		{"My NetworkErrors2", "network/errors; network+errors; network-errors; Network_Errors", ""},
		{
			"AWS/EC2 CPUUtilization InstanceId=i-1234567890123456",
			"{AWS/EC2,InstanceId}; {AWS/EC2, InstanceId} MetricName=\"CPUUtilization\"; {\"AWS/EC2\",\"InstanceId\"}, utilization; " +
				"\"InstanceId\"; instance; \"AWS/EC2\"; Namespace=AWS; InstanceId=\"i-1234567890123456\"; i-1234567890123456; " +
				"MetricName=utilization InstanceId=i; \"InstanceId\"=(\"i-1\" OR \"i-1234567890123456\"); cpu AND utilization; " +
				"(cpu OR memory) AND NOT disk; NOT NOT cpu",
			"{AWS/EC2,InstanceType}; {AWS/EC2,InstanceId,InstanceType}; {aws/ec2}; MetricName=InstanceId; MetricName=\"CPU\"; " +
				"NOT Namespace=AWS; {AWS/EC2,InstanceId} MetricName=\"CPUUtilization\" NOT i-1234567890123456; cpu disk; and",
		},
		{
			"AWS/EC2 CPUUtilization InstanceType=t2.micro", "InstanceType=micro; InstanceType=\"t2.micro\" Namespace=\"AWS/EC2\"",
			"InstanceType=\"micro\"; InstanceType=instance",
		},
		{
			"AWS/Lambda Invocations FunctionName=ProjectB-f",
			"{AWS/Lambda,FunctionName} MetricName=\"Errors\" OR (MetricName=\"Invocations\" AND (ProjectA OR ProjectB))",
			"MetricName=\"Errors\" OR (MetricName=\"Invocations\" AND ProjectA)",
		},
		{"My n D=Europe\\France~Traffic(Network)", `"Europe\\France Traffic\(Network\)"`, `"Europe France Traffic"`},
		{"My n Dimension@Name=v", `{My, "Dimension@Name"}; {My,"Dimension@Name"}, "v"`, "{My, Name}"},
	} {
		m := namedMetric(c.metric)
		for query := range strings.SplitSeq(c.finds, "; ") {
			if !parseSearch(t, query).Matches(&m) {
				t.Errorf("%s does not find %s", query, c.metric)
			}
		}
		for query := range strings.SplitSeq(c.not, "; ") {
			if query != "" && parseSearch(t, query).Matches(&m) {
				t.Errorf("%s finds %s", query, c.metric)
			}
		}
	}
}

// The page's table of tokens.
func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"CustomCount1":      "Custom Count 1",
		"SDBFailure":        "SDB Failure",
		"Project2-trial333": "Project 2 trial 333",
		"Network-Errors_2":  "Network Errors 2",
		"couNT":             "cou NT", "--": "", "t2.micro": "t 2 micro", "AWS/EC2": "AWS EC 2",
	} {
		if got := strings.Join(tokens(text), " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestSearchErrors(t *testing.T) {
	for text, says := range map[string]string{
		"SEARCH":                  "at character 7: SEARCH takes its arguments in parentheses",
		"SEARCH(x)":               "at character 8: a quotation is missing",
		"SEARCH('x)":              "the quotation is not closed",
		"SEARCH('x')":             `"," is missing`,
		"SEARCH('x', Sum)":        "a quotation is missing",
		"SEARCH('x', 'Sum', 1.5)": `")" is missing`,
		"SEARCH('x', 'Sum', 0)":   `"0" is no period`,
		"SEARCH('x', 'Sum', 60":   `")" is missing`,
		"SEARCH(' ', 'Sum')":      "looks for nothing",
		"SEARCH('{', 'Sum')":      "the schema lacks a name",
		"SEARCH('{A', 'Sum')":     `"}" is missing`,
		"SEARCH('{A,}', 'Sum')":   "the schema lacks a name",
		"SEARCH('a AND', 'Sum')":  "a term is missing",
		"SEARCH('a OR', 'Sum')":   "a term is missing",
		"SEARCH('NOT', 'Sum')":    "a term is missing",
		"SEARCH('(a', 'Sum')":     `")" is missing`,
		"SEARCH('a)', 'Sum')":     `at character 10: ")" is not expected here`,
		"SEARCH('A=', 'Sum')":     "a term is missing",
		"SEARCH('A=b=c', 'Sum')":  "at character 12:",
		`SEARCH('""', 'Sum')`:     "the quotation is empty",
		`SEARCH('"a', 'Sum')`:     "the quotation is not closed",
		"SEARCH('" + strings.Repeat("a", 1025) + "', 'Sum')":    "has 1025 characters, at most 1024",
		"SEARCH('" + strings.Repeat("(", 65) + "', 'Sum')":      "nests deeper",
		"[" + strings.Repeat("SEARCH('a','Sum'),", 101) + "m1]": "more than 100 searches",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: got %v, want %s", text, err, says)
		}
	}
}

// A search returns an array, which other functions take.
func TestSearchInExpression(t *testing.T) {
	e, err := Parse("SUM(SEARCH('{My} errors', 'Sum', 60)) + m1")
	if err != nil {
		t.Fatal(err)
	}
	s := e.Searches()[0]
	if s.Statistic != "Sum" || s.Period != time.Minute || !slices.Equal(e.IDs(), []string{"m1"}) {
		t.Errorf("got %+v, %v", s, e.IDs())
	}
	d := data("m1: 10 10 10")
	d.Found = map[*Search][]Series{s: {{Values: parse("1 2 -")}, {Values: parse("3 - -")}}}
	r, err := e.Eval(d)
	if err != nil || r.Array || format(r.Series[0].Values) != "14 12 10" {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err = e.Eval(data("m1: 10")); err != nil || format(r.Series[0].Values) != "10" {
		t.Errorf("where nothing is found: %+v, %v", r, err)
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		metrics []string
		want    string
	}{
		{nil, ""},
		{[]string{"N m"}, "m"},
		{[]string{"N m D=1", "N m D=2"}, "1|2"},
		{[]string{"N m D=1", "N n D=1"}, "m|n"},
		{[]string{"N m D=1 E=x", "N n D=2 E=x", "M n D=2 E=x"}, "1 m N|2 n N|2 n M"},
	} {
		var found []Metric
		for _, text := range c.metrics {
			found = append(found, namedMetric(text))
		}
		if got := strings.Join(Labels(found), "|"); got != c.want {
			t.Errorf("%v: got %s, want %s", c.metrics, got, c.want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{
		`{AWS/EC2,InstanceId} MetricName="CPUUtilization" NOT "x"`, `"A b"=("i-1" OR i-2), (EC2 OR EBS) AND ReadOps`,
		`NOT Namespace=AWS`, `"a\"\\"`, `{"My N", D@1},`, `ö=Ä2b`,
	} {
		f.Add(s, "CustomCount1")
	}
	f.Fuzz(func(t *testing.T, query, name string) {
		e, err := Parse("SEARCH('" + query + "', 'Sum')")
		if err != nil {
			return
		}
		m := Metric{Namespace: "My", Name: name, Dimensions: []Dimension{{name, query}}}
		for _, s := range e.Searches() {
			s.Matches(&m)
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	e, err := Parse(`SEARCH('{AWS/ECS,ClusterName,ServiceName} utilization NOT ServiceName="web"', 'Average')`)
	if err != nil {
		b.Fatal(err)
	}
	m := namedMetric("AWS/ECS CPUUtilization ClusterName=default ServiceName=worker-17")
	b.ReportAllocs()
	for b.Loop() {
		if !e.Searches()[0].Matches(&m) {
			b.Fatal("not found")
		}
	}
}

// A name's joined tokens find it even if it has delimiters between them.
func TestWholeNames(t *testing.T) {
	for name, want := range map[string]bool{
		"w-eb":    true,
		"Web":     true,
		"WEB_":    true,
		"webs":    false,
		"we":      false,
		"my-web":  true,
		"my-w-eb": false,
		"Straße":  false,
	} {
		m := namedMetric("N " + name)
		if got := parseSearch(t, "web").Matches(&m); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
