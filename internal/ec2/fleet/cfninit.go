package fleet

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Metadata returns the metadata of a resource of a stack of CloudFormation's as JSON; "" if there are none. The stack is given by its name or
// its ID.
type Metadata func(stack, resource string) string

// cfnInit matches a call of cfn-init, over the lines that a backslash joins. The others match its options.
var (
	cfnInit        = regexp.MustCompile(`\bcfn-init\s(?:\\\n|[^\n;&|])*`)
	stackOption    = regexp.MustCompile(`\s(?:--stack|-s)[\s=]+["']?([^\s"']+)`)
	resourceOption = regexp.MustCompile(`\s(?:--resource|-r)[\s=]+["']?([^\s"']+)`)
)

// ecsConfig is the agent's configuration file.
const ecsConfig = "/etc/ecs/ecs.config"

// initConfig is what counts here of a config of AWS::CloudFormation::Init.
// See https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-init.html
type initConfig struct {
	Files    map[string]struct{ Content any }
	Commands map[string]struct{ Command any }
}

// initialized returns what the calls of cfn-init in a script would write to the agent's configuration, and the commands that they would run,
// which may write to it. Of each call all configs count.
func initialized(script string, metadata Metadata) string {
	var text []string
	for _, line := range cfnInit.FindAllString(script, -1) {
		line = strings.ReplaceAll(line, "\\\n", " ")
		stack, resource := stackOption.FindStringSubmatch(line), resourceOption.FindStringSubmatch(line)
		if stack == nil || resource == nil {
			continue
		}
		var m struct {
			Init map[string]json.RawMessage `json:"AWS::CloudFormation::Init"`
		}
		if json.Unmarshal([]byte(metadata(stack[1], resource[1])), &m) != nil {
			continue // nobody else would understand it
		}
		for _, name := range slices.Sorted(maps.Keys(m.Init)) {
			var config initConfig
			if json.Unmarshal(m.Init[name], &config) == nil { // the list of config sets is none
				text = append(text, config.text()...)
			}
		}
	}
	return strings.Join(text, "\n")
}

// text returns a config's text, in the order in which cfn-init takes it.
func (c *initConfig) text() (text []string) {
	content, _ := c.Files[ecsConfig].Content.(string)
	text = append(text, content)
	for _, name := range slices.Sorted(maps.Keys(c.Commands)) {
		command, _ := c.Commands[name].Command.(string)
		text = append(text, command)
	}
	return text
}
