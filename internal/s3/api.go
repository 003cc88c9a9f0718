package s3

import (
	"net/http"
	"slices"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon S3 to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	a := model.API{
		Name:       "s3",
		Title:      "Amazon S3",
		Protocols:  []model.Protocol{model.S3},
		Namespace:  "http://s3.amazonaws.com/doc/2006-03-01/",
		MaxBody:    8 << 20, // bytes of XML, enough for 10,000 parts or 1,000 keys
		Operations: modelOperations,
		Unions:     modelUnions,
		Routes:     routes(),
		Places:     modelPlaces,
		Roots:      roots,
		Service:    service,
	}
	if s, ok := service.(*Service); ok { // others, in tests, have no rules
		a.AllowOrigin = s.AllowOrigin
	}
	return a
}

// routes returns the model's routes. S3 answers some calls with 204, for which the model says 200.
func routes() []model.Route {
	all := slices.Clone(modelRoutes)
	for i, r := range all {
		if r.Operation == "PutBucketPolicy" || r.Operation == "PutBucketTagging" {
			all[i].Status = http.StatusNoContent
		}
	}
	return all
}

// roots maps an operation to its answer's root element in the API reference, where that differs from the SDK's struct name.
var roots = map[string]string{
	"CompleteMultipartUpload":            "CompleteMultipartUploadResult",
	"CopyObject":                         "CopyObjectResult",
	"CreateMultipartUpload":              "InitiateMultipartUploadResult",
	"DeleteObjects":                      "DeleteResult",
	"GetBucketAccelerateConfiguration":   "AccelerateConfiguration",
	"GetBucketAcl":                       "AccessControlPolicy",
	"GetBucketCors":                      "CORSConfiguration",
	"GetBucketLifecycleConfiguration":    "LifecycleConfiguration",
	"GetBucketLocation":                  "LocationConstraint",
	"GetBucketLogging":                   "BucketLoggingStatus",
	"GetBucketNotificationConfiguration": "NotificationConfiguration",
	"GetBucketRequestPayment":            "RequestPaymentConfiguration",
	"GetBucketTagging":                   "Tagging",
	"GetBucketVersioning":                "VersioningConfiguration",
	"GetObjectAcl":                       "AccessControlPolicy",
	"GetObjectAttributes":                "GetObjectAttributesResponse",
	"GetObjectTagging":                   "Tagging",
	"ListBuckets":                        "ListAllMyBucketsResult",
	"ListMultipartUploads":               "ListMultipartUploadsResult",
	"ListObjectVersions":                 "ListVersionsResult",
	"ListObjects":                        "ListBucketResult",
	"ListObjectsV2":                      "ListBucketResult",
	"ListParts":                          "ListPartsResult",
	"UploadPartCopy":                     "CopyPartResult",
}
