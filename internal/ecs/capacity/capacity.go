// Package capacity decides which capacity provider the next task belongs to, and how many instances managed scaling wants. The
// provider follows from the strategy's bases and weights and from the tasks that each provider has. It is pure. RunTask and the
// rollout loop call it before they place a task.
package capacity

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Next returns the provider of the next task: one below its base, or else the one furthest behind its share of the weights.
// Among equals the first in the strategy wins:
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

// before reports whether one more task is a smaller part of a's weight than of b's.
func before(a, b types.CapacityProviderStrategyItem, has map[string]int) bool {
	return weighted(a, has)*int64(b.Weight) < weighted(b, has)*int64(a.Weight)
}

// weighted returns how many tasks beyond its base a provider would have with one more.
func weighted(item types.CapacityProviderStrategyItem, has map[string]int) int64 {
	return int64(has[aws.ToString(item.CapacityProvider)]) - int64(item.Base) + 1
}

// LaunchType returns the launch type of a provider's tasks. Only Fargate's providers can have names that begin with FARGATE.
func LaunchType(provider string) types.LaunchType {
	if strings.HasPrefix(provider, "FARGATE") {
		return types.LaunchTypeFargate
	}
	return types.LaunchTypeEc2
}

// IsFargate reports whether tasks are Fargate's, by their launch type or by a strategy, which never mixes Fargate's providers with others.
func IsFargate(t types.LaunchType, strategy []types.CapacityProviderStrategyItem) bool {
	if len(strategy) > 0 {
		t = LaunchType(aws.ToString(strategy[0].CapacityProvider))
	}
	return t == types.LaunchTypeFargate
}

// Fargate's platform, as tasks show it. There is one version here, which is also AWS's latest:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/platform-fargate.html
const (
	PlatformVersion = "1.4.0"
	PlatformFamily  = "Linux"
)

// Platform returns the version and the family of the platform of tasks, as IsFargate is told of them. Only Fargate's have one.
func Platform(t types.LaunchType, strategy []types.CapacityProviderStrategyItem) (version, family *string) {
	if !IsFargate(t, strategy) {
		return nil, nil
	}
	return aws.String(PlatformVersion), aws.String(PlatformFamily)
}
