package validation

import (
	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/logs"
)

// Services that check their inputs by their models.
var (
	ApplicationAutoScaling = New(appautoscaling.API(nil).Constraints)
	AutoScaling            = New(autoscaling.API(nil).Constraints)
	CloudWatch             = New(cloudwatch.API(nil).Constraints)
	Logs                   = New(logs.API(nil).Constraints)
	STS                    = New(sts.API(nil).Constraints)
)
