package s3

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API is Amazon S3, answered by a service.
func API(service call.Service) model.API {
	return model.API{
		Name:       "s3",
		Title:      "Amazon S3",
		Protocols:  []model.Protocol{model.S3},
		Namespace:  "http://s3.amazonaws.com/doc/2006-03-01/",
		MaxBody:    8 << 20, // of XML: 10,000 parts, or 1,000 keys
		Operations: modelOperations,
		Unions:     modelUnions,
		Routes:     modelRoutes,
		Places:     modelPlaces,
		Roots:      roots,
		Service:    service,
	}
}

// roots are the answers' XML elements as the API reference names them, where that is not what the SDK's struct is called.
var roots = map[string]string{
	"CompleteMultipartUpload":            "CompleteMultipartUploadResult",
	"CopyObject":                         "CopyObjectResult",
	"CreateMultipartUpload":              "InitiateMultipartUploadResult",
	"DeleteObjects":                      "DeleteResult",
	"GetBucketAccelerateConfiguration":   "AccelerateConfiguration",
	"GetBucketAcl":                       "AccessControlPolicy",
	"GetBucketCors":                      "CORSConfiguration",
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
