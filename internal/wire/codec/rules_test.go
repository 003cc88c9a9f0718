package codec

import (
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/wire/model"
)

// Rules of a few APIs, made as wire makes them.
var (
	ecsRules        = rulesOf(ecs.API(nil))
	logsRules       = rulesOf(logs.API(nil))
	stsRules        = rulesOf(sts.API(nil))
	cloudWatchRules = rulesOf(cloudwatch.API(nil))
	s3Rules         = rulesOf(s3.API(nil))
)

func rulesOf(a model.API) Rules {
	return Rules{
		CamelCase:   a.CamelCase,
		Names:       a.Names,
		Places:      a.Places,
		Unions:      a.Unions,
		NewDocument: a.NewDocument,
	}
}
