// Package metrics lists Penstock's own metrics: names and meanings. Collectors are built from this
// list.
package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the metrics.
const (
	Info          = "clusterextensionrevision_info"
	Condition     = "clusterextensionrevision_condition"
	Seconds       = "clusterextensionrevision_condition_seconds"
	Objects       = "clusterextensionrevision_objects"
	Failing       = "clusterextensionrevision_failing_objects"
	Transitions   = "clusterextensionrevision_condition_transitions_total"
	Durations     = "clusterextensionrevision_condition_duration_seconds"
	PlanPhase     = "configurationplan_phase"
	PlanCondition = "configurationplan_condition"
	PlanItems     = "configurationplan_items"
	PlanReview    = "configurationplan_review_seconds"
	PlanEntries   = "configurationplan_phase_entries_total"
	Phases        = "penstock_rollout_phase_duration_seconds"
	Requests      = "penstock_target_requests_total"
	Repairs       = "penstock_drift_repairs_total"
	Contests      = "penstock_contests_total"
	Leader        = "penstock_leader"
	Degraded      = "penstock_store_degraded"
	Full          = "penstock_store_full"
	Unreadable    = "penstock_store_unreadable_records"
	Packs         = "penstock_store_packs"
	Collected     = "penstock_store_collected_packs_total"
	Damaged       = "penstock_store_damaged_records"
	Checked       = "penstock_store_check_timestamp_seconds"
	ExtensionSize = "penstock_store_extension_bytes"
	ShareRefusals = "penstock_store_share_refusals_total"
	VolumeFree    = "penstock_store_volume_free_bytes"
	VolumeReserve = "penstock_store_volume_reserve_bytes"
	Expiry        = "penstock_certificate_expiration_timestamp_seconds"
	Skew          = "penstock_host_clock_skew_seconds"

	ExtensionInfo      = "clusterextension_info"
	ExtensionCondition = "clusterextension_condition"
	ExtensionResolves  = "penstock_extension_resolve_duration_seconds"
	ExtensionPulls     = "penstock_extension_pull_duration_seconds"

	UpgradeFindings = "penstock_upgrade_findings"

	ImageTemplates = "penstock_image_templates"

	FleetClusters = "penstock_fleet_clusters"
	FleetWaits    = "penstock_fleet_waits"

	ChartResources = "penstock_chart_resources"
	ChartRenders   = "penstock_chart_renders_total"

	Notifications       = "penstock_notifications_total"
	NotificationsLeft   = "penstock_notifications_pending"
	NotificationsFailed = "penstock_notifications_failing_seconds"

	MetricAnswers = "penstock_metric_check_answers_total"

	CatalogUnpacked = "penstock_catalog_unpacked_timestamp_seconds"
	CatalogPulled   = "penstock_catalog_last_pull_success"
	CatalogPulls    = "penstock_catalog_pulls_total"
	CatalogPackages = "penstock_catalog_packages"
	CatalogBytes    = "penstock_catalog_content_bytes"
)

// Metric describes one metric.
type Metric struct {
	Name string
	// Type is gauge, counter or histogram.
	Type   string
	Labels []string
	// Help describes the value and its unit.
	Help string
	// EveryReplica is true for metrics that every replica exposes. Only the leader exposes all
	// other metrics.
	EveryReplica bool
}

// Catalogue returns all of Penstock's own metrics.
func Catalogue() []Metric {
	return []Metric{
		{Name: Info, Type: "gauge", Labels: []string{"name", "extension", "revision", "lifecycle"},
			Help: "1 for each revision. lifecycle is Active, Paused, Archived or Deleting."},
		{Name: Condition, Type: "gauge", Labels: []string{"name", "condition", "status"},
			Help: "1 for the present status of a condition of a revision. A finished archived revision has none."},
		{Name: Seconds, Type: "gauge", Labels: []string{"name", "condition", "status"},
			Help: "Seconds since a condition of a revision got its status."},
		{Name: Objects, Type: "gauge", Labels: []string{"name", "state"},
			Help: "Objects of a revision by state: Available (applied and ready), Unready (applied), Pending, Superseded (belongs to a newer revision)."},
		{Name: Failing, Type: "gauge", Labels: []string{"name", "reason"},
			Help: "Objects that hold a revision back, by the reason in status. Objects that status only counts have the reason Omitted."},
		{Name: Transitions, Type: "counter", Labels: []string{"name", "condition", "status"},
			Help: "Changes of a condition of a revision to a status, with the first one."},
		{Name: Durations, Type: "histogram", Labels: []string{"condition", "status"},
			Help: "Seconds for which conditions of revisions had a status, observed at its end."},
		{Name: PlanPhase, Type: "gauge", Labels: []string{"name", "profile", "phase"},
			Help: "1 for the present phase of a ConfigurationPlan."},
		{Name: PlanCondition, Type: "gauge", Labels: []string{"name", "profile", "condition", "status"},
			Help: "1 for the present status of a condition of a ConfigurationPlan."},
		{Name: PlanItems, Type: "gauge", Labels: []string{"name", "profile", "state"},
			Help: "Items of a ConfigurationPlan by state: Pending, InProgress, Completed, Failed, Skipped."},
		{Name: PlanReview, Type: "gauge", Labels: []string{"name", "profile"},
			Help: "Seconds for which a computed ConfigurationPlan has waited for approval; 0 when it does not wait."},
		{Name: PlanEntries, Type: "counter", Labels: []string{"profile", "phase"},
			Help: "Times that plans of a profile entered a phase, without phases that ended at once."},
		{Name: Phases, Type: "histogram", Labels: []string{"phase"},
			Help: "Seconds from the first write of a phase until all its objects were ready."},
		{Name: Requests, Type: "counter", Labels: []string{"verb", "reason"},
			Help: "Requests sent to the target cluster, with retries, by purpose."},
		{Name: Repairs, Type: "counter", Labels: []string{"kind", "manager"},
			Help: "Repaired objects, by kind and by the field manager that had changed them."},
		{Name: Contests, Type: "counter", Labels: []string{"kind", "manager"},
			Help: "Times that the repair of an object was delayed, because another manager changes it back each time."},
		{Name: Packs, Type: "gauge",
			Help: "Packs of manifests in the store after the last collection."},
		{Name: Collected, Type: "counter",
			Help: "Unreferenced packs of manifests that were deleted."},
		{Name: Damaged, Type: "gauge", Labels: []string{"kind"},
			Help: "Findings of the last check of the store, by kind: Unreadable, Corrupt, Missing, Stray, LeftOver (no damage). penstock fsck names the records."},
		{Name: Checked, Type: "gauge",
			Help: "Unix time at which the last check of the store ended; absent before the first one of the term."},
		{Name: ExtensionSize, Type: "gauge", Labels: []string{"extension"},
			Help: "Bytes of the records of an extension in the store, by the last check. The 100 largest extensions have a series each; the rest is other."},
		{Name: Leader, Type: "gauge", EveryReplica: true,
			Help: "1 where the controllers run, else 0."},
		{Name: Degraded, Type: "gauge", EveryReplica: true,
			Help: "1 while nothing is served, because the store is not that of the cluster or the embedded etcd does not run; else 0."},
		{Name: Full, Type: "gauge", EveryReplica: true,
			Help: "1 while etcd accepts no writes that need room; else 0."},
		{Name: Unreadable, Type: "gauge", Labels: []string{"kind"}, EveryReplica: true,
			Help: "Unreadable records of the store, by kind: clusterextensionrevisions, configurationplans, head, inventory, runs, claim, notification. /readyz/store-records names them."},
		{Name: ShareRefusals, Type: "counter", Labels: []string{"of"}, EveryReplica: true,
			Help: "Refused creates of revisions, because a user or a chain (label of) would have exceeded its share of the store."},
		{Name: VolumeFree, Type: "gauge", EveryReplica: true,
			Help: "Free bytes on the volume of --data-dir; absent with an external etcd."},
		{Name: VolumeReserve, Type: "gauge", EveryReplica: true,
			Help: "Bytes that must be free on the volume of --data-dir for writes that need room; absent with an external etcd."},
		{Name: Expiry, Type: "gauge", Labels: []string{"certificate"}, EveryReplica: true,
			Help: "Unix time at which a certificate expires: serving is that of the server, authority that of all replicas."},
		{Name: Skew, Type: "gauge", EveryReplica: true,
			Help: "Seconds by which the clock of this machine is ahead of the host cluster's."},
		{Name: ExtensionInfo, Type: "gauge", Labels: []string{"name", "source", "package", "version"},
			Help: "1 for each ClusterExtension. package is empty when the source is no catalog, version when nothing is installed."},
		{Name: ExtensionCondition, Type: "gauge", Labels: []string{"name", "condition", "status", "reason"},
			Help: "1 for the present status and reason of a condition of a ClusterExtension."},
		{Name: ExtensionResolves, Type: "histogram", Labels: []string{"result"},
			Help: "Seconds to choose the bundle of a ClusterExtension from the catalogs, by result: success or failure."},
		{Name: ExtensionPulls, Type: "histogram", Labels: []string{"result"},
			Help: "Seconds to pull and unpack the content of a ClusterExtension, by result: success or failure. Cached content counts too."},
		{Name: UpgradeFindings, Type: "gauge", Labels: []string{"severity"},
			Help: "Unacknowledged findings of upgrade readiness for the next minor of Kubernetes, by severity: Blocks, BreaksRollback, ActBefore, Look. A scrape computes them again after 15 minutes."},
		{Name: ImageTemplates, Type: "gauge", Labels: []string{"kind", "state"},
			Help: "CatalogSources and ClusterCatalogs with a template of their image, by kind and state: Resolved, Unresolved, LeftToOLM (OLM's controller follows it)."},
		{Name: FleetClusters, Type: "gauge", Labels: []string{"clusterextensionset", "state"},
			Help: "Clusters of the newest rollout of a ClusterExtensionSet, by state: Present, Pending, Deferred, Updating, Unknown, Soaking, Succeeded, RolledBack, Failed, Skipped, Leaving."},
		{Name: FleetWaits, Type: "gauge", Labels: []string{"clusterextensionset", "reason"},
			Help: "1 for each reason that the newest rollout of a ClusterExtensionSet waits for, such as ApprovalRequired, TooManyFailures, TooManyUnreachable, Soaking."},
		{Name: ChartResources, Type: "gauge", Labels: []string{"chartkind", "state"},
			Help: "Custom resources of a served ChartKind, by the reason of Progressing; state is empty before there is one."},
		{Name: ChartRenders, Type: "counter", Labels: []string{"chartkind"},
			Help: "Renderings of the chart of a ChartKind since this process became leader."},
		{Name: Notifications, Type: "counter", Labels: []string{"receiver", "result"},
			Help: "Requests with notifications to a receiver, by result: success or failure. Penstock sends a failed one again."},
		{Name: NotificationsLeft, Type: "gauge", Labels: []string{"receiver"},
			Help: "Notifications that wait for a receiver, at most 1000."},
		{Name: NotificationsFailed, Type: "gauge", Labels: []string{"receiver"},
			Help: "Seconds for which requests to a receiver have failed; 0 when the last attempt succeeded."},
		{Name: MetricAnswers, Type: "counter", Labels: []string{"check", "verdict"},
			Help: "Answers to MetricChecks, by verdict: Yes, No or Unknown."},
		{Name: CatalogUnpacked, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "Unix time at which the content in use of a ClusterCatalog was unpacked, of at most 100 catalogs."},
		{Name: CatalogPulled, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "1 when the last pull of a ClusterCatalog by this process succeeded, 0 when it failed; absent before the first one."},
		{Name: CatalogPulls, Type: "counter", Labels: []string{"catalog", "result"}, EveryReplica: true,
			Help: "Pulls of a ClusterCatalog by this process, with polls that found nothing new, by result: success or failure."},
		{Name: CatalogPackages, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "Packages in the index in use of a ClusterCatalog."},
		{Name: CatalogBytes, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "Bytes of the served content of a ClusterCatalog, uncompressed; absent where catalogd serves it."},
	}
}

func described(name string) Metric {
	all := Catalogue()
	return all[slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })]
}

// Desc returns the description of a metric that is computed at each scrape.
func Desc(name string) *prometheus.Desc {
	m := described(name)
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// Counter returns the counter with a name.
func Counter(name string) *prometheus.CounterVec {
	m := described(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// Histogram returns the histogram with a name and upper bounds.
func Histogram(name string, buckets []float64) *prometheus.HistogramVec {
	m := described(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets}, m.Labels)
}
