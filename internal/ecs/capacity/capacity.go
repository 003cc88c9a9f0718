// Package capacity decides which capacity provider a task belongs to. It is pure: from a strategy's base and
// weights and from how many tasks each provider has already it names the next one's. RunTask and package
// rollout call it before they have the task placed.
package capacity

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Next is the provider of the next task: the one with a base until it has that many, then the one that is
// furthest behind its share of the weights. Of equals the first one in the strategy is taken:
// https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_CapacityProviderStrategyItem.html
func Next(strategy []types.CapacityProviderStrategyItem, has map[string]int) string {
	next, least := "", types.CapacityProviderStrategyItem{}
	for _, item := range strategy {
		name := aws.ToString(item.CapacityProvider)
		if has[name] < int(item.Base) {
			return name
		}
		if item.Weight > 0 && (next == "" || before(item, least, has)) {
			next, least = name, item
		}
	}
	return next
}

// before says whether one more task is a smaller part of a's weight than it is of b's.
func before(a, b types.CapacityProviderStrategyItem, has map[string]int) bool {
	return weighted(a, has)*int64(b.Weight) < weighted(b, has)*int64(a.Weight)
}

// weighted is how many tasks beyond its base a provider has with one more.
func weighted(item types.CapacityProviderStrategyItem, has map[string]int) int64 {
	return int64(has[aws.ToString(item.CapacityProvider)]) - int64(item.Base) + 1
}

// LaunchType is that of a provider's tasks. FARGATE and FARGATE_SPOT are names that no other provider can have.
func LaunchType(provider string) types.LaunchType {
	if strings.HasPrefix(provider, "FARGATE") {
		return types.LaunchTypeFargate
	}
	return types.LaunchTypeEc2
}
