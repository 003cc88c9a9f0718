package wire

import (
	"cmp"
	"net/http"

	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
)

// absent are services of AWS's that clients often call and that aren't here, by their names in signatures.
var absent = map[string]string{
	"apigateway":        "Amazon API Gateway",
	"aps":               "Amazon Managed Service for Prometheus",
	"athena":            "Amazon Athena",
	"backup":            "AWS Backup",
	"batch":             "AWS Batch",
	"bedrock":           "Amazon Bedrock",
	"cloudcontrolapi":   "AWS Cloud Control API",
	"cloudfront":        "Amazon CloudFront",
	"cloudtrail":        "AWS CloudTrail",
	"codebuild":         "AWS CodeBuild",
	"codedeploy":        "AWS CodeDeploy",
	"codepipeline":      "AWS CodePipeline",
	"cognito-identity":  "Amazon Cognito Identity",
	"cognito-idp":       "Amazon Cognito User Pools",
	"config":            "AWS Config",
	"dynamodb":          "Amazon DynamoDB",
	"ecr-public":        "Amazon ECR Public",
	"eks":               "Amazon EKS",
	"elasticache":       "Amazon ElastiCache",
	"elasticbeanstalk":  "AWS Elastic Beanstalk",
	"elasticfilesystem": "Amazon EFS",
	"elasticmapreduce":  "Amazon EMR",
	"es":                "Amazon OpenSearch Service",
	"events":            "Amazon EventBridge",
	"firehose":          "Amazon Data Firehose",
	"fsx":               "Amazon FSx",
	"glue":              "AWS Glue",
	"grafana":           "Amazon Managed Grafana",
	"guardduty":         "Amazon GuardDuty",
	"iam":               "AWS IAM",
	"imagebuilder":      "EC2 Image Builder",
	"iot":               "AWS IoT",
	"kafka":             "Amazon MSK",
	"kinesis":           "Amazon Kinesis",
	"kms":               "AWS KMS",
	"lambda":            "AWS Lambda",
	"mq":                "Amazon MQ",
	"organizations":     "AWS Organizations",
	"pipes":             "Amazon EventBridge Pipes",
	"rds":               "Amazon RDS",
	"redshift":          "Amazon Redshift",
	"resource-groups":   "AWS Resource Groups",
	"route53":           "Amazon Route 53",
	"sagemaker":         "Amazon SageMaker",
	"scheduler":         "Amazon EventBridge Scheduler",
	"servicediscovery":  "AWS Cloud Map",
	"servicequotas":     "Service Quotas",
	"ses":               "Amazon SES",
	"sns":               "Amazon SNS",
	"sso":               "AWS IAM Identity Center",
	"states":            "AWS Step Functions",
	"synthetics":        "Amazon CloudWatch Synthetics",
	"tagging":           "AWS Resource Groups Tagging API",
	"transfer":          "AWS Transfer Family",
	"wafv2":             "AWS WAF",
	"xray":              "AWS X-Ray",
}

// absentVersions are versions of APIs whose names in signatures others have that are here.
var absentVersions = map[string]string{"2012-06-01": "Elastic Load Balancing (classic)"}

// absentXML are those whose clients expect XML and call paths.
var absentXML = map[string]bool{"cloudfront": true, "route53": true}

// refuseStranger refuses a request that is for none of the APIs.
func (h *Handler) refuseStranger(r *http.Request) error {
	scope := sign.ScopeOf(r)
	if scope == "" || h.byName[scope] != nil {
		return refusal.New("UnknownOperationException", "The request is for no service that runs here: %s is %q, the signature is for %q.",
			sign.TargetHeader, r.Header.Get(sign.TargetHeader), scope)
	}
	return refuseAbsent(cmp.Or(absent[scope], "service "+scope))
}

func refuseAbsent(title string) error {
	return refusal.With(http.StatusNotImplemented, "NotImplementedException", "Pintle has no %s. docs/coverage.md lists what there is.", title)
}

// protocolOfStranger returns the protocol in which the caller of a service that isn't here reads an error.
func protocolOfStranger(r *http.Request) protocol {
	service, _ := rpcPath(r)
	switch {
	case service != "":
		return protocols[model.CBOR]
	case r.Header.Get(sign.TargetHeader) != "":
		return protocols[model.JSON11]
	case r.Method == http.MethodPost && isForm(r) || absentXML[sign.ScopeOf(r)]:
		return protocols[model.Query]
	}
	return protocols[model.JSON11]
}
