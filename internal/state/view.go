package state

import "github.com/hashicorp/go-memdb"

// View gives the tables as they were at one moment; in an Update, as the transaction sees them.
type View struct {
	txn   *memdb.Txn
	watch memdb.WatchSet

	AccountSettings    Table[AccountSetting]
	AlarmHistory       Table[AlarmHistory]
	Alarms             Table[Alarm]
	AnomalyDetectors   Table[AnomalyDetector]
	AutoScalingGroups  Table[AutoScalingGroup]
	CapacityProviders  Table[CapacityProvider]
	Clusters           Table[Cluster]
	ContainerInstances Table[ContainerInstance]
	Dashboards         Table[Dashboard]
	Deliveries         Table[Delivery]
	GroupActions       Table[GroupAction]
	GroupActivities    Table[GroupActivity]
	GroupPolicies      Table[GroupPolicy]
	GroupRefreshes     Table[GroupRefresh]
	IdempotencyTokens  Table[IdempotencyToken]
	Instances          Table[Instance]
	LaunchTemplates    Table[LaunchTemplate]
	ScalableTargets    Table[ScalableTarget]
	ScalingActivities  Table[ScalingActivity]
	ScalingPolicies    Table[ScalingPolicy]
	ScheduledActions   Table[ScheduledAction]
	ServiceDeployments Table[ServiceDeployment]
	ServiceRevisions   Table[ServiceRevision]
	Services           Table[Service]
	TaskDefinitions    Table[TaskDefinition]
	TaskFamilies       Table[TaskFamily]
	Tasks              Table[Task]
}

func newView(txn *memdb.Txn, watch memdb.WatchSet) *View {
	return bind(&View{txn: txn, watch: watch}, nil)
}

func newTx(txn *memdb.Txn, store *Store) *Tx {
	tx := &Tx{View: &View{txn: txn}, store: store}
	bind(tx.View, tx)
	return tx
}

// bind gives the view its tables; with a tx, they can be written.
func bind(v *View, tx *Tx) *View {
	v.AccountSettings = Table[AccountSetting]{v, accountSettings, tx}
	v.AlarmHistory = Table[AlarmHistory]{v, alarmHistory, tx}
	v.Alarms = Table[Alarm]{v, alarms, tx}
	v.AnomalyDetectors = Table[AnomalyDetector]{v, anomalyDetectors, tx}
	v.AutoScalingGroups = Table[AutoScalingGroup]{v, autoScalingGroups, tx}
	v.CapacityProviders = Table[CapacityProvider]{v, capacityProviders, tx}
	v.Clusters = Table[Cluster]{v, clusters, tx}
	v.ContainerInstances = Table[ContainerInstance]{v, containerInstances, tx}
	v.Dashboards = Table[Dashboard]{v, dashboards, tx}
	v.Deliveries = Table[Delivery]{v, deliveries, tx}
	v.GroupActions = Table[GroupAction]{v, groupActions, tx}
	v.GroupActivities = Table[GroupActivity]{v, groupActivities, tx}
	v.GroupPolicies = Table[GroupPolicy]{v, groupPolicies, tx}
	v.GroupRefreshes = Table[GroupRefresh]{v, groupRefreshes, tx}
	v.IdempotencyTokens = Table[IdempotencyToken]{v, idempotencyTokens, tx}
	v.Instances = Table[Instance]{v, instances, tx}
	v.LaunchTemplates = Table[LaunchTemplate]{v, launchTemplates, tx}
	v.ScalableTargets = Table[ScalableTarget]{v, scalableTargets, tx}
	v.ScalingActivities = Table[ScalingActivity]{v, scalingActivities, tx}
	v.ScalingPolicies = Table[ScalingPolicy]{v, scalingPolicies, tx}
	v.ScheduledActions = Table[ScheduledAction]{v, scheduledActions, tx}
	v.ServiceDeployments = Table[ServiceDeployment]{v, serviceDeployments, tx}
	v.ServiceRevisions = Table[ServiceRevision]{v, serviceRevisions, tx}
	v.Services = Table[Service]{v, services, tx}
	v.TaskDefinitions = Table[TaskDefinition]{v, taskDefinitions, tx}
	v.TaskFamilies = Table[TaskFamily]{v, taskFamilies, tx}
	v.Tasks = Table[Task]{v, tasks, tx}
	return v
}

// tables is every table by its name in the journal.
var tables = func() map[string]definition {
	m := map[string]definition{}
	for _, d := range []definition{
		accountSettings, alarmHistory, alarms, anomalyDetectors, autoScalingGroups, capacityProviders, clusters, containerInstances, dashboards, deliveries, groupActions, groupActivities, groupPolicies, groupRefreshes, idempotencyTokens,
		instances, launchTemplates, scalableTargets,
		scalingActivities, scalingPolicies, scheduledActions, serviceDeployments, serviceRevisions, services, taskDefinitions,
		taskFamilies, tasks,
	} {
		m[d.tableName()] = d
	}
	return m
}()

func schema() *memdb.DBSchema {
	s := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{}}
	for name, d := range tables {
		s.Tables[name] = d.schema()
	}
	return s
}
