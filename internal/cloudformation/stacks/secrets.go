package stacks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// conceal puts what is shown of properties in the place of what they are.
func (c *construction) conceal(ctx context.Context, reason string) string {
	properties, text := c.properties, c.shown
	if text == "" { // an earlier process began this
		properties, text, _ = c.wanted(ctx, c.src, c.resource) // without them, nothing was sent that could be repeated
	}
	var shown any
	if json.Unmarshal([]byte(text), &shown) != nil {
		return reason
	}
	secrets := map[string]string{}
	findSecrets(properties, shown, secrets)
	for _, secret := range slices.SortedFunc(maps.Keys(secrets), func(a, b string) int { return len(b) - len(a) }) {
		reason = strings.ReplaceAll(reason, secret, secrets[secret])
	}
	return reason
}

// findSecrets finds the texts in properties that are shown as others.
func findSecrets(properties, shown any, found map[string]string) {
	switch p := properties.(type) {
	case map[string]any:
		s, _ := shown.(map[string]any)
		for name, v := range p {
			findSecrets(v, s[name], found)
		}
	case []any:
		s, _ := shown.([]any)
		for i := range min(len(p), len(s)) {
			findSecrets(p[i], s[i], found)
		}
	case string:
		if s, isText := shown.(string); isText && s != p && p != "" {
			found[p] = s
		}
	}
}
