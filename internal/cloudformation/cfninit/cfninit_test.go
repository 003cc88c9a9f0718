package cfninit

import (
	"strings"
	"testing"
)

const metadata = `{"AWS::CloudFormation::Init": {
	"configSets": {"default": ["a", {"ConfigSet": "more"}], "more": "b", "loop": [{"ConfigSet": "loop"}], "lost": ["nowhere"]},
	"a": {"commands": {"01": {"command": "true"}}}, "b": {}, "bad": {"commands": 7}}}`

// TestSelect: the configs come in the order of their sets; what can't be found is named.
func TestSelect(t *testing.T) {
	for _, c := range []struct {
		metadata string
		sets     []string
		want     string
	}{
		{metadata, nil, "a b"},
		{metadata, []string{"more", "default"}, "b a b"},
		{metadata, []string{"loop"}, "the config set loop contains itself"},
		{metadata, []string{"lost"}, "there is no config nowhere"},
		{metadata, []string{"none"}, "there is no config set none"},
		{`{"AWS::CloudFormation::Init": {"config": {}}}`, nil, "config"},
		{`{"AWS::CloudFormation::Init": {"other": {}}}`, nil, "there is no config config"},
		{`{"AWS::CloudFormation::Init": {"config": {"files": 7}}}`, nil, "the config config: json: cannot unmarshal number"},
		{`{}`, nil, ErrNone.Error()},
		{"", nil, ErrNone.Error()},
	} {
		configs, err := Select(c.metadata, c.sets)
		var names []string
		for _, config := range configs {
			names = append(names, config.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%v of %.60s: %s, want %s", c.sets, c.metadata, got, c.want)
		}
	}
	if all := All(metadata); len(all) != 2 {
		t.Errorf("all that can be read: %v", all)
	}
}
