package wire

import (
	ecrtypes "github.com/aws/aws-sdk-go-v2/service/ecr/types"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// What the SDK's registry of types would list, in packages that are from before it (go.mod says why). TestNamesMatchBotocore notices a missing one.

var ecrErrors = []any{
	&ecrtypes.BlockedByOrganizationPolicyException{}, &ecrtypes.EmptyUploadException{}, &ecrtypes.ExclusionAlreadyExistsException{},
	&ecrtypes.ExclusionNotFoundException{}, &ecrtypes.ImageAlreadyExistsException{}, &ecrtypes.ImageArchivedException{},
	&ecrtypes.ImageDigestDoesNotMatchException{}, &ecrtypes.ImageNotFoundException{},
	&ecrtypes.ImageStorageClassUpdateNotSupportedException{}, &ecrtypes.ImageTagAlreadyExistsException{},
	&ecrtypes.InvalidLayerException{}, &ecrtypes.InvalidLayerPartException{}, &ecrtypes.InvalidParameterException{},
	&ecrtypes.InvalidTagParameterException{}, &ecrtypes.KmsException{}, &ecrtypes.LayerAlreadyExistsException{},
	&ecrtypes.LayerInaccessibleException{}, &ecrtypes.LayerPartTooSmallException{}, &ecrtypes.LayersNotFoundException{},
	&ecrtypes.LifecyclePolicyNotFoundException{}, &ecrtypes.LifecyclePolicyPreviewInProgressException{},
	&ecrtypes.LifecyclePolicyPreviewNotFoundException{}, &ecrtypes.LimitExceededException{},
	&ecrtypes.PullThroughCacheRuleAlreadyExistsException{}, &ecrtypes.PullThroughCacheRuleNotFoundException{},
	&ecrtypes.ReferencedImagesNotFoundException{}, &ecrtypes.RegistryPolicyNotFoundException{},
	&ecrtypes.RepositoryAlreadyExistsException{}, &ecrtypes.RepositoryNotEmptyException{}, &ecrtypes.RepositoryNotFoundException{},
	&ecrtypes.RepositoryPolicyNotFoundException{}, &ecrtypes.ScanNotFoundException{}, &ecrtypes.SecretNotFoundException{},
	&ecrtypes.ServerException{}, &ecrtypes.SigningConfigurationNotFoundException{}, &ecrtypes.TemplateAlreadyExistsException{},
	&ecrtypes.TemplateNotFoundException{}, &ecrtypes.TooManyTagsException{}, &ecrtypes.UnableToAccessSecretException{},
	&ecrtypes.UnableToDecryptSecretValueException{}, &ecrtypes.UnableToGetUpstreamImageException{},
	&ecrtypes.UnableToGetUpstreamLayerException{}, &ecrtypes.UnableToListUpstreamImageReferrersException{},
	&ecrtypes.UnsupportedImageTypeException{}, &ecrtypes.UnsupportedUpstreamRegistryException{}, &ecrtypes.UploadNotFoundException{},
	&ecrtypes.ValidationException{},
}

var secretsManagerErrors = []any{
	&smtypes.DecryptionFailure{}, &smtypes.EncryptionFailure{}, &smtypes.InternalServiceError{}, &smtypes.InvalidNextTokenException{},
	&smtypes.InvalidParameterException{}, &smtypes.InvalidRequestException{}, &smtypes.LimitExceededException{},
	&smtypes.MalformedPolicyDocumentException{}, &smtypes.PreconditionNotMetException{}, &smtypes.PublicPolicyException{},
	&smtypes.ResourceExistsException{}, &smtypes.ResourceNotFoundException{},
}

var ssmErrors = []any{
	&ssmtypes.AccessDeniedException{}, &ssmtypes.AlreadyExistsException{}, &ssmtypes.AssociatedInstances{},
	&ssmtypes.AssociationAlreadyExists{}, &ssmtypes.AssociationDoesNotExist{}, &ssmtypes.AssociationExecutionDoesNotExist{},
	&ssmtypes.AssociationLimitExceeded{}, &ssmtypes.AssociationVersionLimitExceeded{},
	&ssmtypes.AutomationDefinitionNotApprovedException{}, &ssmtypes.AutomationDefinitionNotFoundException{},
	&ssmtypes.AutomationDefinitionVersionNotFoundException{}, &ssmtypes.AutomationExecutionLimitExceededException{},
	&ssmtypes.AutomationExecutionNotFoundException{}, &ssmtypes.AutomationStepNotFoundException{},
	&ssmtypes.ComplianceTypeCountLimitExceededException{}, &ssmtypes.ConflictException{},
	&ssmtypes.CustomSchemaCountLimitExceededException{}, &ssmtypes.DocumentAlreadyExists{}, &ssmtypes.DocumentLimitExceeded{},
	&ssmtypes.DocumentPermissionLimit{}, &ssmtypes.DocumentVersionLimitExceeded{}, &ssmtypes.DoesNotExistException{},
	&ssmtypes.DuplicateDocumentContent{}, &ssmtypes.DuplicateDocumentVersionName{}, &ssmtypes.DuplicateInstanceId{},
	&ssmtypes.FeatureNotAvailableException{}, &ssmtypes.HierarchyLevelLimitExceededException{},
	&ssmtypes.HierarchyTypeMismatchException{}, &ssmtypes.IdempotentParameterMismatch{}, &ssmtypes.IncompatiblePolicyException{},
	&ssmtypes.InternalServerError{}, &ssmtypes.InvalidActivation{}, &ssmtypes.InvalidActivationId{},
	&ssmtypes.InvalidAggregatorException{}, &ssmtypes.InvalidAllowedPatternException{}, &ssmtypes.InvalidAssociation{},
	&ssmtypes.InvalidAssociationVersion{}, &ssmtypes.InvalidAutomationExecutionParametersException{},
	&ssmtypes.InvalidAutomationSignalException{}, &ssmtypes.InvalidAutomationStatusUpdateException{}, &ssmtypes.InvalidCommandId{},
	&ssmtypes.InvalidDeleteInventoryParametersException{}, &ssmtypes.InvalidDeletionIdException{}, &ssmtypes.InvalidDocument{},
	&ssmtypes.InvalidDocumentContent{}, &ssmtypes.InvalidDocumentOperation{}, &ssmtypes.InvalidDocumentSchemaVersion{},
	&ssmtypes.InvalidDocumentType{}, &ssmtypes.InvalidDocumentVersion{}, &ssmtypes.InvalidFilter{}, &ssmtypes.InvalidFilterKey{},
	&ssmtypes.InvalidFilterOption{}, &ssmtypes.InvalidFilterValue{}, &ssmtypes.InvalidInstanceId{},
	&ssmtypes.InvalidInstanceInformationFilterValue{}, &ssmtypes.InvalidInstancePropertyFilterValue{},
	&ssmtypes.InvalidInventoryGroupException{}, &ssmtypes.InvalidInventoryItemContextException{},
	&ssmtypes.InvalidInventoryRequestException{}, &ssmtypes.InvalidItemContentException{}, &ssmtypes.InvalidKeyId{},
	&ssmtypes.InvalidNextToken{}, &ssmtypes.InvalidNotificationConfig{}, &ssmtypes.InvalidOptionException{},
	&ssmtypes.InvalidOutputFolder{}, &ssmtypes.InvalidOutputLocation{}, &ssmtypes.InvalidParameters{}, &ssmtypes.InvalidPermissionType{},
	&ssmtypes.InvalidPluginName{}, &ssmtypes.InvalidPolicyAttributeException{}, &ssmtypes.InvalidPolicyTypeException{},
	&ssmtypes.InvalidResourceId{}, &ssmtypes.InvalidResourceType{}, &ssmtypes.InvalidResultAttributeException{}, &ssmtypes.InvalidRole{},
	&ssmtypes.InvalidSchedule{}, &ssmtypes.InvalidTag{}, &ssmtypes.InvalidTarget{}, &ssmtypes.InvalidTargetMaps{},
	&ssmtypes.InvalidTypeNameException{}, &ssmtypes.InvalidUpdate{}, &ssmtypes.InvocationDoesNotExist{},
	&ssmtypes.ItemContentMismatchException{}, &ssmtypes.ItemSizeLimitExceededException{},
	&ssmtypes.MalformedResourcePolicyDocumentException{}, &ssmtypes.MaxDocumentSizeExceeded{}, &ssmtypes.NoLongerSupportedException{},
	&ssmtypes.OpsItemAccessDeniedException{}, &ssmtypes.OpsItemAlreadyExistsException{}, &ssmtypes.OpsItemConflictException{},
	&ssmtypes.OpsItemInvalidParameterException{}, &ssmtypes.OpsItemLimitExceededException{}, &ssmtypes.OpsItemNotFoundException{},
	&ssmtypes.OpsItemRelatedItemAlreadyExistsException{}, &ssmtypes.OpsItemRelatedItemAssociationNotFoundException{},
	&ssmtypes.OpsMetadataAlreadyExistsException{}, &ssmtypes.OpsMetadataInvalidArgumentException{},
	&ssmtypes.OpsMetadataKeyLimitExceededException{}, &ssmtypes.OpsMetadataLimitExceededException{},
	&ssmtypes.OpsMetadataNotFoundException{}, &ssmtypes.OpsMetadataTooManyUpdatesException{}, &ssmtypes.ParameterAlreadyExists{},
	&ssmtypes.ParameterLimitExceeded{}, &ssmtypes.ParameterMaxVersionLimitExceeded{}, &ssmtypes.ParameterNotFound{},
	&ssmtypes.ParameterPatternMismatchException{}, &ssmtypes.ParameterVersionLabelLimitExceeded{}, &ssmtypes.ParameterVersionNotFound{},
	&ssmtypes.PoliciesLimitExceededException{}, &ssmtypes.ResourceDataSyncAlreadyExistsException{},
	&ssmtypes.ResourceDataSyncConflictException{}, &ssmtypes.ResourceDataSyncCountExceededException{},
	&ssmtypes.ResourceDataSyncInvalidConfigurationException{}, &ssmtypes.ResourceDataSyncNotFoundException{},
	&ssmtypes.ResourceInUseException{}, &ssmtypes.ResourceLimitExceededException{}, &ssmtypes.ResourceNotFoundException{},
	&ssmtypes.ResourcePolicyConflictException{}, &ssmtypes.ResourcePolicyInvalidParameterException{},
	&ssmtypes.ResourcePolicyLimitExceededException{}, &ssmtypes.ResourcePolicyNotFoundException{},
	&ssmtypes.ServiceQuotaExceededException{}, &ssmtypes.ServiceSettingNotFound{}, &ssmtypes.StatusUnchanged{},
	&ssmtypes.SubTypeCountLimitExceededException{}, &ssmtypes.TargetInUseException{}, &ssmtypes.TargetNotConnected{},
	&ssmtypes.ThrottlingException{}, &ssmtypes.TooManyTagsError{}, &ssmtypes.TooManyUpdates{},
	&ssmtypes.TotalSizeLimitExceededException{}, &ssmtypes.UnsupportedCalendarException{},
	&ssmtypes.UnsupportedFeatureRequiredException{}, &ssmtypes.UnsupportedInventoryItemContextException{},
	&ssmtypes.UnsupportedInventorySchemaVersionException{}, &ssmtypes.UnsupportedOperatingSystem{},
	&ssmtypes.UnsupportedOperationException{}, &ssmtypes.UnsupportedParameterType{}, &ssmtypes.UnsupportedPlatformType{},
	&ssmtypes.ValidationException{},
}
