// Package metrics lists the metrics of Penstock's own: what they are called, and what they
// mean. Collectors are built from this list.
package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics.
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

	ChartResources = "penstock_chart_resources"
	ChartRenders   = "penstock_chart_renders_total"

	Notifications       = "penstock_notifications_total"
	NotificationsLeft   = "penstock_notifications_pending"
	NotificationsFailed = "penstock_notifications_failing_seconds"

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
	// Help says what the value means, and its unit.
	Help string
	// EveryReplica is true for what each replica exposes; the rest is exposed by
	// the one that leads.
	EveryReplica bool
}

// Catalogue lists all metrics of Penstock's own.
func Catalogue() []Metric {
	return []Metric{
		{Name: Info, Type: "gauge", Labels: []string{"name", "extension", "revision", "lifecycle"},
			Help: "1 for each revision. lifecycle is Active, Paused, Archived or Deleting."},
		{Name: Condition, Type: "gauge", Labels: []string{"name", "condition", "status"},
			Help: "1 for the status (True, False, Unknown) that a condition of a revision has; the others are not exposed. An archived revision that has nothing left to do has none."},
		{Name: Seconds, Type: "gauge", Labels: []string{"name", "condition", "status"},
			Help: "For how many seconds a condition of a revision has had its status."},
		{Name: Objects, Type: "gauge", Labels: []string{"name", "state"},
			Help: "Objects of a revision by state: Available (as the manifest says, and ready), Unready (as the manifest says), Pending (not or not yet as the manifest says), Superseded (belongs to a newer revision)."},
		{Name: Failing, Type: "gauge", Labels: []string{"name", "reason"},
			Help: "Objects that hold a revision back, by the reason in its status; those that status only counts have the reason Omitted."},
		{Name: Transitions, Type: "counter", Labels: []string{"name", "condition", "status"},
			Help: "How often a condition of a revision became that status, the first time included."},
		{Name: Durations, Type: "histogram", Labels: []string{"condition", "status"},
			Help: "Seconds for which conditions of revisions had a status, counted when the status ended."},
		{Name: PlanPhase, Type: "gauge", Labels: []string{"name", "profile", "phase"},
			Help: "1 for the phase that a ConfigurationPlan is in; the others are not exposed."},
		{Name: PlanCondition, Type: "gauge", Labels: []string{"name", "profile", "condition", "status"},
			Help: "1 for the status (True, False, Unknown) that a condition of a ConfigurationPlan has; the others are not exposed."},
		{Name: PlanItems, Type: "gauge", Labels: []string{"name", "profile", "state"},
			Help: "Items of a ConfigurationPlan by state: Pending, InProgress, Completed, Failed, Skipped. States that no item is in are not exposed."},
		{Name: PlanReview, Type: "gauge", Labels: []string{"name", "profile"},
			Help: "For how many seconds a computed ConfigurationPlan has been waiting for its approval; 0 when it does not wait."},
		{Name: PlanEntries, Type: "counter", Labels: []string{"profile", "phase"},
			Help: "How often a ConfigurationPlan of a profile came into a phase and stayed there for a while."},
		{Name: Phases, Type: "histogram", Labels: []string{"phase"},
			Help: "Seconds from the first write of a phase until all its objects were ready. Phases that a change of leader interrupted are left out."},
		{Name: Requests, Type: "counter", Labels: []string{"verb", "reason"},
			Help: "Requests sent to the target cluster, retries included, by what they were for."},
		{Name: Repairs, Type: "counter", Labels: []string{"kind", "manager"},
			Help: "Objects that were brought back to their manifest, by kind and by the field manager that had changed them."},
		{Name: Contests, Type: "counter", Labels: []string{"kind", "manager"},
			Help: "How often an object was left as it is for a while, because it is changed back again and again."},
		{Name: Packs, Type: "gauge",
			Help: "Packs of manifests in the store, after the last collection of what nothing refers to."},
		{Name: Collected, Type: "counter",
			Help: "Packs of manifests that were deleted because nothing referred to them."},
		{Name: Damaged, Type: "gauge", Labels: []string{"kind"},
			Help: "Findings of the last check of the whole store, by kind: Unreadable, Corrupt, Missing, Stray, LeftOver; penstock fsck names the records. LeftOver is no damage."},
		{Name: Checked, Type: "gauge",
			Help: "Unix time at which the last check of the whole store ended; not exposed before the first one of the term."},
		{Name: ExtensionSize, Type: "gauge", Labels: []string{"extension"},
			Help: "Bytes that the records of an extension take in the store, as the last check found; the 100 largest extensions have their own series, the others are (other)."},
		{Name: Leader, Type: "gauge", EveryReplica: true,
			Help: "1 where the controllers run, else 0."},
		{Name: Degraded, Type: "gauge", EveryReplica: true,
			Help: "1 while nothing is served, because the store is not known to be that of the cluster, or because the embedded etcd does not run; else 0."},
		{Name: Full, Type: "gauge", EveryReplica: true,
			Help: "1 while etcd has reached its quota and accepts no writes, or the embedded etcd accepts none that add to it; else 0."},
		{Name: Unreadable, Type: "gauge", Labels: []string{"kind"}, EveryReplica: true,
			Help: "How many records cannot be read from the store, by kind: clusterextensionrevisions, configurationplans, head, inventory, runs, claim, notification; /readyz/store-records names them."},
		{Name: ShareRefusals, Type: "counter", Labels: []string{"of"}, EveryReplica: true,
			Help: "Creates of revisions that were refused because a user or a chain, as the label of says, would have had more of the store than stays free for others."},
		{Name: VolumeFree, Type: "gauge", EveryReplica: true,
			Help: "Bytes that are free on the volume of --data-dir; not exposed with an etcd elsewhere."},
		{Name: VolumeReserve, Type: "gauge", EveryReplica: true,
			Help: "Bytes that must be free on the volume of --data-dir before anything is added to the store; not exposed with an etcd elsewhere."},
		{Name: Expiry, Type: "gauge", Labels: []string{"certificate"}, EveryReplica: true,
			Help: "When a certificate expires, as a Unix time: serving is the one that the server presents, authority the one that all replicas share. Both are renewed in time unless they come from files."},
		{Name: Skew, Type: "gauge", EveryReplica: true,
			Help: "By how many seconds the clock of this machine is ahead of the host cluster's, by the host's last answer."},
		{Name: ExtensionInfo, Type: "gauge", Labels: []string{"name", "source", "package", "version"},
			Help: "1 for each ClusterExtension. package is empty when the source is no catalog, version when nothing is installed."},
		{Name: ExtensionCondition, Type: "gauge", Labels: []string{"name", "condition", "status", "reason"},
			Help: "1 for the status (True, False, Unknown) and the reason that a condition of a ClusterExtension has; the others are not exposed."},
		{Name: ExtensionResolves, Type: "histogram", Labels: []string{"result"},
			Help: "Seconds that it took to choose the bundle of a ClusterExtension from the catalogs, by result: success, or failure when they have none."},
		{Name: ExtensionPulls, Type: "histogram", Labels: []string{"result"},
			Help: "Seconds that it took to pull and unpack what a ClusterExtension installs, by result: success or failure. Content that is already on disk counts too."},
		{Name: UpgradeFindings, Type: "gauge", Labels: []string{"severity"},
			Help: "Findings of upgrade readiness for the next minor of Kubernetes that nobody acknowledges, by severity: Blocks, BreaksRollback, ActBefore, Look. A scrape has Penstock compute them again when they are 15 minutes old."},
		{Name: ImageTemplates, Type: "gauge", Labels: []string{"kind", "state"},
			Help: "CatalogSources and ClusterCatalogs with a template of their image, by kind and state: Resolved, Unresolved, LeftToOLM (OLM's own controller follows it)."},
		{Name: ChartResources, Type: "gauge", Labels: []string{"chartkind", "state"},
			Help: "Custom resources of a ChartKind that is served, by the reason of their condition Progressing; state is empty before there is one."},
		{Name: ChartRenders, Type: "counter", Labels: []string{"chartkind"},
			Help: "How often the chart of a ChartKind was rendered since this process became leader. Nothing is rendered while chart, values and inputs are as before."},
		{Name: Notifications, Type: "counter", Labels: []string{"receiver", "result"},
			Help: "Requests with notifications that were sent to a receiver, by result: success or failure. A failed one is sent again."},
		{Name: NotificationsLeft, Type: "gauge", Labels: []string{"receiver"},
			Help: "Notifications that a receiver has not taken yet; at most 1000 are kept."},
		{Name: NotificationsFailed, Type: "gauge", Labels: []string{"receiver"},
			Help: "For how many seconds a receiver has taken nothing although there is something for it; 0 when the last attempt succeeded."},
		{Name: CatalogUnpacked, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "Unix time at which the content of a ClusterCatalog that is in use was taken from its image; 100 catalogs are exposed."},
		{Name: CatalogPulled, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "1 when the last attempt of this process to get the content of a ClusterCatalog succeeded, 0 when it failed; not exposed before the first one."},
		{Name: CatalogPulls, Type: "counter", Labels: []string{"catalog", "result"}, EveryReplica: true,
			Help: "Attempts of this process to get the content of a ClusterCatalog, polls that found nothing new included, by result: success or failure."},
		{Name: CatalogPackages, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "Packages in the index of a ClusterCatalog that is in use."},
		{Name: CatalogBytes, Type: "gauge", Labels: []string{"catalog"}, EveryReplica: true,
			Help: "Bytes of the content of a ClusterCatalog as it is served, uncompressed; not exposed where catalogd serves it."},
	}
}

// described returns the metric of that name.
func described(name string) Metric {
	all := Catalogue()
	return all[slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })]
}

// Desc is for metrics that are made when somebody scrapes.
func Desc(name string) *prometheus.Desc {
	m := described(name)
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// Counter returns the counter of that name.
func Counter(name string) *prometheus.CounterVec {
	m := described(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// Histogram returns the histogram of that name, with these upper bounds.
func Histogram(name string, buckets []float64) *prometheus.HistogramVec {
	m := described(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets}, m.Labels)
}
