package advice

type step struct {
	signal Signal
	who    Who
	do     string
	// command may contain {extension}, {revision} and {plan}. It is empty for none, or if the
	// message ends in a command.
	command string
	// alone replaces do and command if no earlier revision has succeeded, so that a rollback is
	// impossible. Nil keeps them.
	alone *answer
	// catalog replaces do, command and alone for the user of a ClusterExtension. This user creates
	// no revisions, and sets fields, annotations and versions instead. Nil keeps them.
	catalog *answer
	// example is the command that the reference shows if the answer needs a value that only the
	// reader knows.
	example string
}

// answer is an action with its command. alone is the action if no earlier revision has succeeded.
type answer struct {
	do, command string
	alone       *answer
}

const (
	rollBack = "kubectl penstock rollback {extension}"
	correct  = "correct that in the next revision"
	next     = "kubectl penstock deploy ./manifests --name {extension}"
	versions = "kubectl penstock upgrades {extension}"
	edit     = "kubectl edit clusterextension {extension}"
	objects  = "kubectl penstock tree {revision}"
	catalogs = "kubectl get clustercatalogs"
	log      = "kubectl logs --namespace penstock-system --selector app.kubernetes.io/name=penstock --tail 100"

	// gone does not promise the deletion of the objects: it depends on their finalizers.
	gone = "It ends when its objects are deleted"

	another = "choose another version in spec.source.catalog.version"
	// configured lists the settings by which a user of a catalog can correct a version that does
	// not become ready.
	configured = "correct spec.config, choose another version in spec.source.catalog.version, or roll back"
	// reconfigured is configured without a rollback, for extensions that have no revision to roll
	// back to.
	reconfigured = "correct spec.config, or " + another
)

// revisionSteps returns the advice for reasons of revisions: of conditions, and of objects in
// phases.
func revisionSteps() map[string]step {
	return map[string]step{
		// Nothing is wrong.
		"RolledOut":    {signal: Healthy, who: Nobody},
		"NoFailure":    {signal: Healthy, who: Nobody},
		"NotStalled":   {signal: Healthy, who: Nobody},
		"Released":     {signal: Healthy, who: Nobody},
		"Requested":    {signal: Healthy, who: Nobody},
		"HandedToHelm": {signal: Healthy, who: Nobody, do: "Helm applies the objects of the extension"},
		"Archived":     {signal: Stopped, who: Nobody},
		"Imported":     {signal: Stopped, who: Nobody},
		"Superseded":   {signal: Stopped, who: Nobody, do: "A newer revision takes its place"},

		// It continues by itself.
		"RollingOut":  {signal: InProgress, who: Nobody, do: "It continues by itself"},
		"Repairing":   {signal: InProgress, who: Nobody, do: "It continues by itself"},
		"NotYet":      {signal: InProgress, who: Nobody, do: "It continues by itself"},
		"Soaking":     {signal: InProgress, who: Nobody, do: "It succeeds by itself when that time is over"},
		"TearingDown": {signal: InProgress, who: Nobody, do: gone},

		"MetricCheckFailed":  notReady(),
		"MetricCheckUnknown": {signal: NeedsAttention, who: Administrator, do: "make the metric service answer the MetricCheck that the message names, or have the author of the revisions leave the MetricCheck out; the rollout continues when the service answers", example: "kubectl get metricchecks --output wide"},

		"Waiting":         {signal: InProgress, who: Nobody, do: "It continues by itself when the wait is over"},
		"WaitingForLevel": {signal: InProgress, who: Nobody, do: "It continues by itself when the objects of the earlier level are there"},
		"HandingToHelm":   {signal: InProgress, who: Nobody, do: "It continues by itself"},
		"Unknown":         {signal: InProgress, who: Nobody, do: "It is known when the cluster answers"},
		"Pending":         {signal: InProgress, who: Operator, do: "make sure that a replica leads, if this lasts", command: "kubectl penstock check"},

		"WaitingForWindow": {signal: InProgress, who: Nobody, do: "It begins by itself when the window opens"},

		// It waits for a person.
		"Proposed": {signal: Review, who: Reviewer, do: "review it, and approve it", command: "kubectl penstock resume {revision}",
			catalog: &answer{do: "review it, and approve it", command: "kubectl penstock upgrade {extension}"}},
		"Paused":         {signal: Stopped, who: Author, do: "resume it", command: "kubectl penstock resume {revision}"},
		"Frozen":         {signal: NeedsAttention, who: Administrator, do: "end the freeze: delete the ConfigMap penstock-freeze in the namespace of Penstock", command: "kubectl penstock unfreeze"},
		"Held":           {signal: NeedsAttention, who: Author, do: "change the owner, so that it rolls out something else, or release the hold", catalog: &answer{do: "change the spec, so that it asks for something else, or release the hold"}, example: edit},
		"BudgetExceeded": {signal: NeedsAttention, who: Author, do: "read what would be deleted, and acknowledge it if you want that", example: objects},
		"InstancesExist": {signal: NeedsAttention, who: Author, do: "save or delete the instances, and allow the deletion of their definition if you want that", example: objects},
		"NotEmpty":       {signal: NeedsAttention, who: Author, do: "save or move the content that would be deleted with the object, and acknowledge the deletion if you want it", example: objects},
		"Collision": {signal: NeedsAttention, who: Author, do: "have the next revision take the object over with collisionProtection, or leave it out of the next revision; delete the object only if it holds no data", example: next,
			catalog: &answer{do: "have the extension take the object over: set the annotation penstock.dev/collision-protection to IfNoController, or to None where a controller owns the object; delete the object only if it holds no data", command: "kubectl annotate --overwrite clusterextension {extension} penstock.dev/collision-protection=IfNoController"}},
		"Contested": {signal: NeedsAttention, who: Author, do: "choose an option of the message; without an option, stop the other writer, or leave the field to it: list the field in yield in the next revision", example: objects,
			catalog: &answer{do: "choose an option of the message; without an option, stop the other writer, or leave the field to it: list the field in the annotation penstock.dev/yield"}},
		"ApplyRejected": {signal: NeedsAttention, who: Author, do: "make the next revision with a manifest that the cluster accepts, or have the policy or right that the message names changed", example: next,
			catalog: &answer{do: "have the policy or right that the message names changed, or " + another, command: versions}},
		"ProbeFailed":              notReady(),
		"Unavailable":              notReady(),
		"ProgressDeadlineExceeded": notReady(),
		"Invalid":                  {signal: NeedsAttention, who: Author, do: "make the next revision without the error that the message names", example: next, catalog: &answer{do: another, command: versions}},
		"InvalidManifests":         {signal: NeedsAttention, who: Author, do: "make the next revision without the error that the message names", example: next, catalog: &answer{do: another, command: versions}},
		"KindDefinedLater": {signal: NeedsAttention, who: Author, do: "make the next revision with the CustomResourceDefinition in an earlier phase, or at an earlier install level, than the objects of its kind", example: next,
			catalog: &answer{do: another, command: versions}},
		"KindNotServed": {signal: NeedsAttention, who: Author, do: "install the software that serves the kind, or leave the object out of the next revision; it continues by itself when the kind is served", example: "kubectl api-resources",
			catalog: &answer{do: "install the software that serves the kind; it continues by itself when the kind is served"}},
		"Terminating":       {signal: NeedsAttention, who: Administrator, do: "make sure that the controller of the finalizer that the message names runs; if that controller is gone for good, remove the finalizer from the object: the controller then does no clean-up", example: "kubectl patch widget example --namespace default --type merge --patch '{\"metadata\":{\"finalizers\":null}}'"},
		"TargetUnreachable": {signal: NeedsAttention, who: Administrator, do: "make the cluster answer; Penstock tries again by itself", example: "kubectl penstock check"},
		"TargetUnavailable": {signal: NeedsAttention, who: Administrator, do: "make the cluster that the revision names usable, and the Secret with its kubeconfig; Penstock tries again by itself", example: "kubectl get secrets --namespace penstock-system"},
		"NotWatchable":      {signal: NeedsAttention, who: Administrator, do: "grant penstock-engine the rights to list and watch the kind; Penstock tries again by itself", example: "kubectl auth can-i watch deployments --as system:serviceaccount:penstock-system:penstock-engine"},
		"ContentUnreadable": {signal: NeedsAttention, who: Operator, do: "restore the store from a snapshot, or make the next revision with the manifests inline", example: "kubectl penstock check", catalog: &answer{do: "restore the store from a snapshot"}},
		"Unreadable":        {signal: NeedsAttention, who: Operator, do: "restore the store from a snapshot, or delete the record (runbook PenstockStoreUnreadable)", example: "kubectl penstock check"},
		"PassFailed":        {signal: NeedsAttention, who: Operator, do: "read the log of the replica that leads; Penstock tries again by itself", example: log},

		// Drift is reported and not repaired.
		"DriftFound": {signal: Review, who: Author, do: "take the changes into the next revision, or remove the annotation, so that Penstock repairs them now", command: "kubectl annotate cer {revision} penstock.dev/report-drift-until-",
			catalog: &answer{do: "take the changes into spec.config or patches, or remove the annotation, so that Penstock repairs them now", command: "kubectl annotate clusterextension {extension} penstock.dev/report-drift-until-"}},
		"DriftReported": {signal: InProgress, who: Nobody, do: "Penstock repairs it at the time in the condition DriftReported"},
		"NoDrift":       {signal: Healthy, who: Nobody},

		// There was no automatic rollback.
		"NoEarlierSuccess": {signal: NeedsAttention, who: Author, do: "correct the error in the next revision: no earlier revision has succeeded", example: next,
			catalog: &answer{do: "correct spec.config, or " + another + ": no earlier revision has succeeded", command: versions}},
		"IsRollback": {signal: NeedsAttention, who: Author, do: "make the next revision: this revision is a rollback", example: next, catalog: &answer{do: another + ": this revision is a rollback", command: versions}},
		"Overtaken": {signal: NeedsAttention, who: Author, do: "make the next revision, or roll back to a revision that still exists", command: rollBack, alone: &answer{do: "make the next revision"},
			catalog: &answer{another + ", or roll back to a revision that still exists", rollBack, &answer{do: another, command: versions}}},
		"RollbackRefused": {signal: NeedsAttention, who: Author, do: "do as the message asks; Penstock tries the rollback again by itself", example: rollBack},

		// An object that is a target of a plan.
		"Drifted": {signal: NeedsAttention, who: Planner, do: "have the plan computed again, and review it", example: run},
		"Stale":   {signal: NeedsAttention, who: Planner, do: "have the plan computed again, and review it", example: run},
	}
}

// notReady returns the step for a revision that does not become ready, or did not stay ready.
func notReady() step {
	return step{
		signal: NeedsAttention, who: Author, do: correct + ", or roll back", command: rollBack, alone: &answer{do: correct},
		catalog: &answer{configured, rollBack, &answer{do: reconfigured, command: versions}},
	}
}

// extensionSteps returns the advice for reasons of the condition Ready of ClusterExtensions.
// Reasons that Ready takes from a revision are in revisionSteps.
func extensionSteps() map[string]step {
	return map[string]step{
		"Succeeded":                   {signal: Healthy, who: Nobody},
		"Pending":                     {signal: InProgress, who: Operator, do: "make sure that a replica leads, if this lasts", command: "kubectl penstock check"},
		"RollingOut":                  {signal: InProgress, who: Nobody, do: "It continues by itself"},
		"Deleting":                    {signal: InProgress, who: Nobody, do: gone},
		"RevisionsUnknown":            {signal: NeedsAttention, who: Operator, do: "see why revisions cannot be read; Penstock tries again by itself", command: "kubectl penstock check"},
		"InvalidExtension":            {signal: NeedsAttention, who: Owner, do: "correct the field or the annotation that the message names", command: edit},
		"Unresolved":                  {signal: NeedsAttention, who: Owner, do: "change the version, the channels or the selector in spec.source.catalog", command: versions},
		"CatalogUnavailable":          {signal: NeedsAttention, who: Administrator, do: "make the catalog readable; Penstock tries again by itself", command: catalogs},
		"NoCatalog":                   {signal: NeedsAttention, who: Administrator, do: "restore a catalog that the extension selects", command: catalogs},
		"WaitingForWindow":            {signal: InProgress, who: Owner, do: "do nothing, and it begins when the window opens; or have it begin now", command: "kubectl penstock upgrade {extension}"},
		"NotUpgradeable":              {signal: InProgress, who: Owner, do: "wait until the operator says that it can be upgraded; or have the upgrade begin now", command: "kubectl penstock upgrade {extension}"},
		"RequirementsUnmet":           {signal: NeedsAttention, who: Owner, do: "install the extensions that the message names; then it continues by itself", command: "kubectl get clusterextensions"},
		"RequiredByOthers":            {signal: NeedsAttention, who: Owner, do: "change the extensions that the message names first; or continue without them, by its command", example: "kubectl describe clusterextension {extension}"},
		"PullFailed":                  {signal: NeedsAttention, who: Administrator, do: "make the image available to Penstock; Penstock tries again by itself", example: log},
		"UnsupportedContent":          {signal: NeedsAttention, who: Owner, do: another + "; the message names the parts that Penstock cannot install", command: versions},
		"SignatureVerificationFailed": {signal: NeedsAttention, who: Administrator, do: "have an allowed signer sign the image, or correct the policy that the message names; Penstock tries again by itself", example: "kubectl describe clusterextension {extension}"},
		"SignatureFormatUnsupported":  {signal: NeedsAttention, who: Administrator, do: "sign the image in a format that Penstock verifies, or allow the image in the signature policy; the message names both, and Penstock tries again by itself", example: "kubectl describe clusterextension {extension}"},
		"InvalidConfiguration":        {signal: NeedsAttention, who: Owner, do: "correct the field of spec.config, or the annotation, that the message names", command: edit},
		"UnsafeDefinitions":           {signal: NeedsAttention, who: Owner, do: "read what would break, and " + another + "; or accept it: set spec.install.preflight.crdUpgradeSafety.enforcement to None", command: versions},
		"InvalidManifests":            {signal: NeedsAttention, who: Owner, do: another + "; the message names the manifest that cannot be stored", command: versions},
		"AuthorUnknown":               {signal: NeedsAttention, who: Owner, do: "write the extension again: Penstock does not know the author of its present content", command: edit},
		"ChangedSinceReview":          {signal: NeedsAttention, who: Owner, do: "the image renders to other content than the approved content: change the ClusterExtensionSet of the extension, and have the next rollout approved", example: "kubectl describe clusterextension {extension}"},
		"Denied":                      {signal: NeedsAttention, who: Administrator, do: "grant the rights that the message names; then write the extension again, or wait: Penstock tries again within 5 minutes", example: "kubectl describe clusterextension {extension}"},
		"RevisionRefused":             {signal: NeedsAttention, who: Administrator, do: "have the policy or the quota that the message names allow the revision", example: "kubectl describe clusterextension {extension}"},
		"NameTaken":                   {signal: NeedsAttention, who: Owner, do: "use another name, or follow the message to take the revisions over", example: "kubectl penstock history {extension}"},
		"ReleaseBlocked":              {signal: NeedsAttention, who: Owner, do: "follow the message about the Helm release", example: "kubectl describe clusterextension {extension}"},
	}
}

const (
	recompute = "have the plan computed again (retry), and review it"
	approve   = "kubectl penstock plan approve {plan}"
	run       = "kubectl penstock plan run {plan}" // computes the plan again, shows it and asks
)

func planSteps() map[string]step {
	return map[string]step{
		"Completed":            {signal: Healthy, who: Nobody},
		"Restored":             {signal: Healthy, who: Nobody},
		"PrerequisitesMet":     {signal: Healthy, who: Nobody},
		"NoDrift":              {signal: Healthy, who: Nobody},
		"UpToDate":             {signal: Healthy, who: Nobody},
		"Ignored":              {signal: Stopped, who: Nobody, do: "It does nothing before its action is DryRun or Apply"},
		"Pending":              {signal: InProgress, who: Nobody, do: "It is computed soon; if this lasts, make sure that a replica of Penstock leads"},
		"NotLookedAtYet":       {signal: InProgress, who: Nobody, do: "It is checked soon; if this lasts, make sure that a replica of Penstock leads"},
		"Drafting":             {signal: InProgress, who: Nobody, do: "It can be reviewed when it is computed"},
		"InProgress":           {signal: InProgress, who: Nobody, do: "It continues by itself"},
		"WaitingForWindow":     {signal: InProgress, who: Nobody, do: "It continues by itself when the window opens"},
		"WaitingForProfile":    {signal: InProgress, who: Nobody, do: "It continues by itself when the plans that the message names are Completed"},
		"Frozen":               revisionSteps()["Frozen"],
		"ReviewRequired":       {signal: Review, who: Approver, do: "review and approve it", command: approve},
		"TargetsHealthy":       {signal: Healthy, who: Nobody},
		"TargetUnhealthy":      {signal: NeedsAttention, who: Administrator, do: "repair what the operator of the target reports; the plan notices by itself", example: "kubectl penstock plan show {plan}"},
		"MissingDependency":    {signal: NeedsAttention, who: Administrator, do: "install, or remove, what the message names; the plan notices by itself", example: "kubectl penstock plan show {plan}"},
		"FieldConflict":        {signal: NeedsAttention, who: Planner, do: "settle with the owners of these fields, or set onConflict to Take; if two plans set the same field, change one of the plans or set its action to Ignore", example: "kubectl penstock plan show {plan}"},
		"ProfileLocked":        {signal: NeedsAttention, who: Planner, do: "wait for the plan that has the profile, or take the profile from it", example: "kubectl penstock plan show {plan}"},
		"ApproverLacksRights":  {signal: NeedsAttention, who: Approver, do: "have it computed again (retry), and approved by a user with the rights for its changes", command: run},
		"ItemFailed":           {signal: NeedsAttention, who: Planner, do: "see why the item failed, and " + recompute + "; or undo the run", command: run},
		"CompletedWithErrors":  {signal: NeedsAttention, who: Planner, do: "see which items failed, and " + recompute + "; or undo the run", command: run},
		"PlanStale":            {signal: NeedsAttention, who: Planner, do: recompute, command: run},
		"PlanRefused":          {signal: NeedsAttention, who: Planner, do: "change what the message names, and " + recompute, command: run},
		"ConfigurationDrifted": {signal: NeedsAttention, who: Planner, do: "settle with the person or controller that changed it, or " + recompute, command: run},
		"ApprovalExpired":      {signal: NeedsAttention, who: Planner, do: recompute, command: run},
		"LogicChanged":         {signal: NeedsAttention, who: Planner, do: recompute + ": it would be different today", command: run},
		"Unreadable":           {signal: NeedsAttention, who: Operator, do: "restore the store from a snapshot", example: "kubectl penstock check"},
	}
}
