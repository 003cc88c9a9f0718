package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestGPUServiceFollowsItsLoad has target tracking on the utilisation of GPUs grow a service whose tasks
// keep theirs busy, and shrink it again when they no longer do: with the AWS CLI, as on AWS but for the
// fast reaction.
func TestGPUServiceFollowsItsLoad(t *testing.T) {
	p := Up(t, "p3.16xlarge", "--reaction", "fast", "--settle", "1s")
	register := func(load string) {
		p.AWS("ecs", "register-task-definition", "--cli-input-json", fmt.Sprintf(`{"family":"inference","containerDefinitions":[{
			"name":"main","image":"i","command":["/bin/sleep","1000"],"cpu":128,"memory":64,"stopTimeout":2,
			"environment":[{"name":"PINTLE_SIMULATED_GPU_LOAD","value":%q}],"resourceRequirements":[{"type":"GPU","value":"1"}]}]}`, load))
	}
	register("0.9")
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "inference", "--desired-count", "1")
	scaling := func(operation string, args ...string) string {
		return p.AWS(append([]string{"application-autoscaling", operation, "--service-namespace", "ecs"}, args...)...)
	}
	web := []string{"--scalable-dimension", "ecs:service:DesiredCount", "--resource-id", "service/default/web"}
	scaling("register-scalable-target", append(web, "--min-capacity", "1", "--max-capacity", "4")...)
	alarms := scaling("put-scaling-policy", append(web, "--policy-name", "gpu", "--policy-type", "TargetTrackingScaling",
		"--target-tracking-scaling-policy-configuration", `{"TargetValue":50,"ScaleOutCooldown":5,"ScaleInCooldown":5,"CustomizedMetricSpecification":{
			"Namespace":"ECS/ContainerInsights/Prometheus","MetricName":"DCGM_FI_DEV_GPU_UTIL","Statistic":"Average",
			"Dimensions":[{"Name":"ClusterName","Value":"default"},{"Name":"ServiceName","Value":"web"}]}}`,
		"--query", "Alarms[].AlarmName", "--output", "text")...)
	for _, name := range []string{"TargetTracking-service/default/web-AlarmHigh-", "TargetTracking-service/default/web-AlarmLow-"} {
		if !strings.Contains(alarms, name) {
			t.Errorf("the policy's alarms are %s", alarms)
		}
	}
	running := func(want string) func() bool {
		return func() bool {
			time.Sleep(time.Second)
			return p.AWS("ecs", "describe-services", "--services", "web", "--query", "services[0].[desiredCount,runningCount]", "--output", "text") == want
		}
	}
	Eventually(t, "4 tasks under load", 90*time.Second, running("4\t4"))
	Eventually(t, "the activity's success", 10*time.Second, func() bool {
		activity := scaling("describe-scaling-activities", "--query", "ScalingActivities[0].[StatusCode,Description,Cause]", "--output", "text")
		return strings.HasPrefix(activity, "Successful\tSetting desired count to 4.\tmonitor alarm TargetTracking-service/default/web-AlarmHigh-")
	})
	register("0.05")
	p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "inference")
	Eventually(t, "1 task without load", 3*time.Minute, running("1\t1"))
}
