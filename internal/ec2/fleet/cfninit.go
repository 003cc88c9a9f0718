package fleet

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/cloudformation/cfninit"
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
		configs := cfninit.All(metadata(stack[1], resource[1]))
		for _, name := range slices.Sorted(maps.Keys(configs)) {
			text = append(text, textOf(configs[name])...)
		}
	}
	return strings.Join(text, "\n")
}

// textOf returns a config's text, in the order in which cfn-init takes it.
func textOf(c cfninit.Config) (text []string) {
	content, _ := c.Files[ecsConfig].Content.(string)
	text = append(text, content)
	for _, name := range slices.Sorted(maps.Keys(c.Commands)) {
		command, _ := c.Commands[name].Command.(string)
		text = append(text, command)
	}
	return text
}
