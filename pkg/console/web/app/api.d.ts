// Generated from the Go types: UPDATE=1 go test -run TestTypes ./pkg/console/screens. DO NOT EDIT.

export interface Advice {
  signal: string;
  subject?: string;
  what: string;
  because?: string;
  reason?: string;
  cause?: string;
  since?: string;
  who: string;
  do?: string;
  command?: string;
}

export interface ApproveRequest {
  planHash: string;
  comment?: string;
  dryRun?: boolean;
}

export interface BlastRadius {
  pools?: Array<string>;
  nodes?: number;
  reboot?: boolean;
  waves?: number;
}

export interface BlockedVersion {
  version: string;
  catalog: string;
  cause: string;
  message: string;
}

export interface CatalogPackage {
  metadata?: { name?: string };
  catalog: string;
  catalogs: Array<PackageCatalog>;
  description?: string;
  defaultChannel?: string;
  latest?: string;
  deprecation?: Deprecation;
  channels?: Array<PackageChannel>;
  versions?: Array<PackageVersion>;
  versionCount: number;
  kinds?: Array<PackageKind>;
  installed?: Array<InstalledVersion>;
}

export interface CatalogPackageGraph {
  metadata?: { name?: string };
  catalog: string;
  defaultChannel?: string;
  entries: Array<GraphEntry>;
  upgrades: Array<GraphUpgrade>;
  omitted?: number;
  installed?: Array<InstalledVersion>;
  paths?: Array<GraphPath>;
}

export interface CatalogRow {
  name: string;
  signal: string;
  state: string;
  message?: string;
  priority: number;
  since?: string;
}

export interface ChangeCounts {
  added: number;
  changed: number;
  removed: number;
}

export interface Condition {
  type: string;
  status: string;
  observedGeneration?: number;
  lastTransitionTime: string;
  reason: string;
  message: string;
}

export interface ConfigurationPlanSpec {
  profile: string;
  action?: string;
  failurePolicy?: string;
  onConflict?: string;
  options?: PlanOptions;
  waitTimeout?: string;
  approvedPlanHash?: string;
  expiresAfter?: string;
  window?: PlanWindow;
  expires?: string;
  approvals?: number;
  requires?: Array<string>;
  restoreRun?: number;
}

export interface ConfigurationPlanStatus {
  phase?: string;
  observedGeneration?: number;
  planHash?: string;
  sourceSnapshotHash?: string;
  inputsHash?: string;
  operatorVersion?: string;
  draftedAt?: string;
  manifests?: string;
  captured?: string;
  impactSeverity?: string;
  diff?: string;
  items?: Array<PlanItem>;
  approval?: PlanApproval;
  requestedBy?: Array<string>;
  window?: PlanWindowStatus;
  run?: number;
  message?: string;
  conditions?: Array<Condition>;
  definition?: PlanDefinition;
}

export interface ConfigurationProfileStatus {
  state: string;
  plan?: string;
  planPhase?: string;
  message?: string;
  prerequisites: string;
  requirements?: Array<ProfileRequirement>;
  impactSeverity?: string;
  items?: Array<ProfileItem>;
}

export interface Container {
  name: string;
  init?: boolean;
  ready: boolean;
  state: string;
  reason?: string;
  message?: string;
  ended?: string;
  restarts: number;
}

export interface DecideRequest {
  digest: string;
  clusters?: Array<string>;
  comment?: string;
  dryRun?: boolean;
}

export interface DeclaredAccess {
  definition: string;
  access: string;
}

export interface Deprecation {
  message: string;
}

export interface Diff {
  asked: string;
  diff: RevisionDiff;
}

export interface DiffNote {
  severity: string;
  reason: string;
  group?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  message: string;
}

export interface DiffSummary {
  added: number;
  removed: number;
  changed: number;
  unchanged: number;
  withheld?: number;
  fromBytes?: number;
  toBytes?: number;
  removedDigest?: string;
  approvalDigest?: string;
}

export interface DiffTruncation {
  objects?: number;
  fields?: number;
  values?: number;
  lines?: number;
  notes?: number;
}

export interface Done {
  name: string;
}

export interface Entry {
  time: string;
  signal?: string;
  what: string;
  who?: string;
  kind: string;
  name: string;
  message?: string;
  count?: number;
}

export interface Event {
  time: string;
  type: string;
  reason: string;
  message: string;
  kind: string;
  namespace?: string;
  name: string;
  count: number;
  from?: string;
}

export interface Events {
  asked: string;
  events: Array<Event>;
  refused?: Array<string>;
}

export interface Extension {
  name: string;
  row: ExtensionRow;
  advice: Array<Advice>;
  revisions: Array<Revision>;
}

export interface ExtensionReadiness {
  name: string;
  revision?: string;
  version?: string;
  severity?: string;
  findings?: number;
  statement?: string;
  notLooked?: string;
  next?: string;
  order?: string;
}

export interface ExtensionRow {
  name: string;
  signal: string;
  state: string;
  message?: string;
  do?: string;
  revision?: string;
  version?: string;
  phase?: string;
  ready: number;
  objects: number;
  since?: string;
  proposed?: string;
  proposedVersion?: string;
  proposedDiff?: string;
  frozen?: string;
}

export interface ExtensionUpgrades {
  extension: string;
  installed?: string;
  allowed?: string;
  channel?: string;
  catalog?: string;
  approval?: string;
  newest?: string;
  blocked?: Array<BlockedVersion>;
  omitted?: number;
  message?: string;
}

export interface FailureCause {
  reason: string;
  object: ObjectName;
  container?: string;
  exitCode?: number;
  restarts?: number;
  related?: ObjectName;
}

export interface FieldChange {
  path: string;
  op: string;
  old?: unknown;
  new?: unknown;
  index?: number;
  redacted?: boolean;
  truncatedBytes?: number;
}

export interface GraphEntry {
  channel: string;
  version: string;
  upgradeOf?: string;
  deprecation?: Deprecation;
  path?: string;
}

export interface GraphPath {
  from: string;
  to: string;
  versions: Array<string>;
}

export interface GraphUpgrade {
  from: string;
  to: string;
  channel: string;
  by: string;
}

export interface HighDensitySwapOptions {
  enableSwap?: boolean;
  swapSource?: string;
  partitionLabel?: string;
  fileSizeMiB?: number;
  memoryToRequestRatio?: number;
  enableKSM?: boolean;
}

export interface Hit {
  of: string;
  name: string;
  version?: string;
  revision?: string;
  apiVersion?: string;
  kind?: string;
  namespace?: string;
}

export interface InstallRequest {
  latest: string;
  name: string;
  namespace: string;
  version?: string;
  channel?: string;
  serviceAccount?: string;
  atOnce?: boolean;
  dryRun?: boolean;
}

export interface Installation {
  name: string;
  written: string;
  version?: string;
  refused?: string;
  free?: string;
  notes?: Array<string>;
  warnings?: Array<string>;
}

export interface InstalledVersion {
  extension: string;
  version: string;
}

export interface LoadAwareRebalancingOptions {
  enablePSIMetrics?: boolean;
  deschedulingIntervalSeconds?: number;
  mode?: string;
  deviationThresholds?: string;
  evictionLimitTotal?: number;
  evictionLimitNode?: number;
}

export interface MakePlanRequest {
  name: string;
  options?: Record<string, string>;
  take?: boolean;
}

export interface Manager {
  name: string;
  operation: string;
  subresource?: string;
  time?: string;
  fields?: Array<string>;
  omitted?: number;
}

export interface ManifestObject {
  revision: string;
  phase: string;
  digest: string;
  size: number;
  manifest: string;
  hidden?: boolean;
}

export interface Me {
  cluster: string;
  username: string;
  groups?: Array<string>;
  version: string;
  server?: string;
  readOnly?: boolean;
}

export interface Message {
  kind: string;
  rows?: Rows;
  extension?: Extension;
  plan?: Plan;
  rollout?: Rollout;
  wanted?: Wanted;
  log?: Array<string>;
  refusal?: Refusal;
  part?: string;
}

export interface NodeHealthRemediationOptions {
  remediator?: string;
  template?: TemplateReference;
  nodeSelector?: Record<string, string>;
  minHealthy?: string | number;
  unhealthyConditions?: Array<UnhealthyCondition>;
  includeControlPlane?: boolean;
}

export interface ObjectChange {
  change: string;
  apiVersion: string;
  fromAPIVersion?: string;
  kind: string;
  namespace?: string;
  name: string;
  fields?: Array<FieldChange>;
  fieldCount?: number;
  linesAdded?: number;
  linesRemoved?: number;
  unified?: string;
  onlyLabels?: string;
  notCompared?: string;
  truncated?: DiffTruncation;
}

export interface ObjectFailure {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
  reason: string;
  message: string;
  cause?: FailureCause;
}

export interface ObjectName {
  group?: string;
  kind: string;
  namespace?: string;
  name: string;
}

export interface ObjectRepair {
  time: string;
  message: string;
}

export interface Owners {
  asked: string;
  target?: string;
  managers: Array<Manager>;
  live?: string;
  hidden?: boolean;
  events?: Array<Event>;
  notShown?: string;
}

export interface Package {
  asked: string;
  package: CatalogPackage;
  latest?: string;
  elsewhere?: string;
  channel?: string;
  taken?: string;
  kinds?: Array<string>;
  upgrades?: Array<ExtensionUpgrades>;
  hidden?: Refusal;
}

export interface PackageCatalog {
  name: string;
  priority: number;
  latest?: string;
}

export interface PackageChannel {
  name: string;
  latest?: string;
  deprecation?: Deprecation;
}

export interface PackageKind {
  group: string;
  version: string;
  kind: string;
}

export interface PackageRow {
  name: string;
  catalog: string;
  description?: string;
  channel?: string;
  latest?: string;
  elsewhere?: string;
  installed?: string;
  deprecated?: string;
  kinds?: string;
  named: boolean;
}

export interface PackageVersion {
  version: string;
  channels?: Array<string>;
  deprecation?: Deprecation;
  unsupported?: string;
}

export interface Packages {
  asked: string;
  packages: Array<PackageRow>;
  catalogs: Array<CatalogRow>;
  hidden?: Refusal;
  warnings?: Array<string>;
}

export interface Phase {
  name: string;
  state: string;
  objects: number;
  available: number;
  started?: string;
  done?: string;
  failing?: Array<ObjectFailure>;
  omitted?: number;
}

export interface Plan {
  name: string;
  row: PlanRow;
  uid: string;
  advice: Advice;
  frozen?: string;
  spec: ConfigurationPlanSpec;
  status: ConfigurationPlanStatus;
  given: number;
  wanted: number;
}

export interface PlanApproval {
  username: string;
  uid?: string;
  groups?: Array<string>;
  extra?: Record<string, Array<string>>;
  time: string;
  planHash?: string;
  comment?: string;
  mode: string;
  run?: number;
  others?: Array<PlanApprover>;
}

export interface PlanApprovalRequest {
  metadata?: { name?: string };
  spec: PlanApprovalRequestSpec;
  status?: PlanApproval;
}

export interface PlanApprovalRequestSpec {
  planHash: string;
  comment?: string;
}

export interface PlanApprover {
  username: string;
  uid?: string;
  groups?: Array<string>;
  extra?: Record<string, Array<string>>;
  time: string;
  comment?: string;
}

export interface PlanDefinition {
  digest: string;
  manifest: string;
  requirements?: Array<DeclaredAccess>;
}

export interface PlanDiff {
  metadata?: { name?: string };
  planHash: string;
  items: Array<PlanDiffItem>;
}

export interface PlanDiffItem {
  name: string;
  targetRef: TargetRef;
  stale?: boolean;
  diff?: string;
  message?: string;
}

export interface PlanHistory {
  metadata?: { name?: string };
  runs: Array<PlanRun>;
}

export interface PlanItem {
  name: string;
  targetRef: TargetRef;
  action?: string;
  impactSeverity?: string;
  impactReason?: string;
  blastRadius?: BlastRadius;
  digest?: string;
  fingerprint?: string;
  diff?: string;
  takes?: Array<TakenFields>;
  notes?: Array<string>;
  state?: string;
  message?: string;
  startedAt?: string;
  applied?: boolean;
  appliedAt?: string;
  pausedSeconds?: number;
  lastTransitionTime?: string;
}

export interface PlanOptions {
  loadAwareRebalancing?: LoadAwareRebalancingOptions;
  highDensitySwap?: HighDensitySwapOptions;
  nodeHealthRemediation?: NodeHealthRemediationOptions;
  values?: unknown;
}

export interface PlanRequest {
  uid: string;
}

export interface PlanRow {
  name: string;
  signal: string;
  state: string;
  profile: string;
  impact?: string;
  message?: string;
  do?: string;
  done: number;
  items: number;
  begins?: string;
}

export interface PlanRun {
  plan: string;
  run: number;
  profile: string;
  planHash: string;
  manifests?: string;
  captured?: string;
  restoreRun?: number;
  approval: PlanApproval;
  startedAt: string;
  endedAt?: string;
  outcome?: string;
  items?: Array<PlanRunItem>;
}

export interface PlanRunItem {
  name: string;
  targetRef: TargetRef;
  action?: string;
  digest?: string;
  state: string;
  message?: string;
  startedAt?: string;
  applied?: boolean;
  endedAt?: string;
}

export interface PlanWindow {
  schedule: string;
  timeZone?: string;
  duration: string;
}

export interface PlanWindowStatus {
  opensAt: string;
  closesAt: string;
  local: string;
}

export interface Pod {
  namespace: string;
  name: string;
  signal: string;
  state: string;
  said: string;
  created: string;
  node?: string;
  replicaSet?: string;
  containers: Array<Container>;
}

export interface PodDetail {
  asked: string;
  pod: Pod;
  events: Array<Event>;
  notShown?: string;
}

export interface Pods {
  asked: string;
  target?: string;
  workloads: Array<Workload>;
  refused?: Array<string>;
}

export interface Profile {
  name: string;
  signal: string;
  description: string;
  options?: Array<ProfileOption>;
  status: ConfigurationProfileStatus;
  own?: boolean;
  planSignal?: string;
  planImpact?: string;
  wrong?: string;
}

export interface ProfileItem {
  name: string;
  targetRef: TargetRef;
  action?: string;
  impactSeverity?: string;
  impactReason?: string;
  blastRadius?: BlastRadius;
  notes?: Array<string>;
  message?: string;
}

export interface ProfileOption {
  name: string;
  type?: string;
  description?: string;
  default?: string;
  allowed?: string;
}

export interface ProfileRequirement {
  definition: string;
  kind: string;
  optional?: boolean;
  state: string;
  message?: string;
}

export interface Profiles {
  asked: string;
  profiles: Array<Profile>;
  hidden?: Refusal;
}

export interface Readiness {
  asked: string;
  answer: UpgradeReadiness;
}

export interface Refusal {
  status: number;
  reason: string;
  message: string;
}

export interface RepairRecord {
  object: ObjectName;
  revision: string;
  manager?: string;
  message: string;
  count: number;
  firstAt: string;
  lastAt: string;
}

export interface Revision {
  name: string;
  number: number;
  uid: string;
  generation: number;
  version?: string;
  target?: string;
  lifecycle: string;
  signal: string;
  state: string;
  message?: string;
  since?: string;
  created?: string;
  by?: string;
  cause?: string;
  reason?: string;
  rollbackOf?: string;
  proposed?: boolean;
  diff: string;
  ready: number;
  objects: number;
  phases: Array<Phase>;
}

export interface RevisionDiff {
  metadata?: { name?: string };
  from?: string;
  to: string;
  notes?: Array<DiffNote>;
  summary: DiffSummary;
  changes?: Array<ObjectChange>;
  truncated?: DiffTruncation;
}

export interface RevisionHistory {
  metadata?: { name?: string };
  revisions: Array<RevisionRecord>;
  hold?: RevisionHold;
  repairs?: Array<RepairRecord>;
}

export interface RevisionHold {
  revision: string;
  ownerGeneration?: number;
}

export interface RevisionObjectStatus {
  phase: string;
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
  state: string;
  reason?: string;
  message?: string;
  cause?: FailureCause;
  detail?: string;
  createdAt?: string;
  lastRepair?: ObjectRepair;
}

export interface RevisionObjects {
  metadata?: { name?: string };
  objects: Array<RevisionObjectStatus>;
  withheld?: number;
}

export interface RevisionRecord {
  name: string;
  revision: number;
  version?: string;
  state: string;
  result?: string;
  changes?: ChangeCounts;
  objects?: number;
  createdAt?: string;
  completedAt?: string;
  approvedAt?: string;
  deletedAt?: string;
  requestedBy?: string;
  rollbackOf?: string;
  cause?: string;
}

export interface RevisionRollback {
  metadata?: { name?: string };
  spec?: RevisionRollbackSpec;
  status?: RevisionRollbackStatus;
}

export interface RevisionRollbackSpec {
  cause?: string;
  from?: string;
}

export interface RevisionRollbackStatus {
  revision?: string;
  revisionUID?: string;
  from?: string;
  diff?: RevisionDiff;
}

export interface Right {
  allowed: boolean;
  missing?: string;
}

export interface RollbackRequest {
  from?: string;
  cause?: string;
  dryRun?: boolean;
}

export interface Rollout {
  name: string;
  set: string;
  requestedBy: string;
  created: string;
  signal: string;
  state: string;
  message?: string;
  digest?: string;
  wave?: string;
  troubles: string;
  haltedBy?: string;
  leaving?: Array<string>;
  ended?: boolean;
  approvals?: Array<RolloutApproval>;
  decisions?: Array<RolloutDecision>;
  waves: Array<RolloutWave>;
  clusters: Array<RolloutCluster>;
}

export interface RolloutApproval {
  wave: string;
  digest: string;
  user: string;
  time: string;
  comment?: string;
}

export interface RolloutCluster {
  name: string;
  wave: string;
  signal: string;
  state: string;
  since?: string;
  attempt?: number;
  reason?: string;
  by?: string;
  extension?: string;
  retry?: boolean;
  skip?: boolean;
}

export interface RolloutDecision {
  verb: string;
  user: string;
  time: string;
  clusters?: Array<string>;
  count?: number;
  comment?: string;
}

export interface RolloutGroup {
  clusters: Array<string>;
  from?: string;
  to: string;
  diff?: RevisionDiff;
}

export interface RolloutGroups {
  groups: Array<RolloutGroup>;
}

export interface RolloutWave {
  name: string;
  maxUnavailable: number;
  maxFailures: number;
  maxUnreachable: number;
  soakSeconds: number;
  approvalRequired?: boolean;
  window?: RolloutWindow;
}

export interface RolloutWindow {
  schedule: string;
  timeZone: string;
  duration: string;
}

export interface Rows {
  extensions?: Array<ExtensionRow>;
  plans?: Array<PlanRow>;
  sets?: Array<SetRow>;
  goneExtensions?: Array<string>;
  gonePlans?: Array<string>;
  goneSets?: Array<string>;
}

export interface Search {
  hits: Array<Hit>;
  omitted?: number;
  refused?: Array<string>;
}

export interface SetRow {
  name: string;
  signal: string;
  state: string;
  message?: string;
  rollout?: string;
  updated: number;
  clusters: number;
}

export interface StateRequest {
  uid: string;
  generation: number;
  state: string;
  why?: string;
  removedDigest?: string;
  approvalDigest?: string;
  notBefore?: string;
  dryRun?: boolean;
}

export interface TakenFields {
  manager: string;
  fields: Array<string>;
  reclaimed?: boolean;
}

export interface Target {
  asked: string;
  ref: TargetRef;
  manifest?: string;
  hidden?: boolean;
  managers?: Array<Manager>;
}

export interface TargetRef {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
}

export interface TemplateReference {
  namespace: string;
  name: string;
}

export interface Timeline {
  asked: string;
  entries: Array<Entry>;
  omitted?: number;
  who: Array<string>;
  what: Array<string>;
  refused?: Array<string>;
}

export interface UndoRequest {
  run?: number;
}

export interface UnhealthyCondition {
  type: string;
  status: string;
  duration: string;
}

export interface UpgradeAcknowledgement {
  by: string;
  at: string;
  reason: string;
}

export interface UpgradeFinding {
  severity: string;
  certainty: string;
  extension?: string;
  plan?: string;
  chartKind?: string;
  revision?: string;
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  field?: string;
  removedIn?: string;
  replacement?: string;
  evidence: string;
  fix?: string;
  id?: string;
  acknowledged?: UpgradeAcknowledgement;
}

export interface UpgradeReadiness {
  metadata?: { name?: string };
  current?: string;
  target: string;
  lifecycle: string;
  verdict: string;
  message: string;
  findings?: Array<UpgradeFinding>;
  omitted?: number;
  extensions?: Array<ExtensionReadiness>;
  steps?: Array<UpgradeStep>;
  pending?: number;
}

export interface UpgradeStep {
  order?: string;
  extension: string;
  version?: string;
  next?: string;
  passed?: string;
  command?: string;
}

export interface UpgradeWindow {
  opens?: string;
  said?: string;
}

export interface VersionChange {
  was?: string;
  version?: string;
  would?: ExtensionUpgrades;
  hidden?: Refusal;
  warnings?: Array<string>;
}

export interface VersionRequest {
  uid: string;
  generation: number;
  version: string;
  allowed?: string;
  dryRun?: boolean;
}

export interface Wanted {
  row: ExtensionRow;
  uid: string;
  generation: number;
  source: string;
  package?: string;
  version?: string;
  channels?: Array<string>;
  namespace: string;
  installed?: boolean;
}

export interface Workload {
  kind: string;
  namespace: string;
  name: string;
  pods: Array<Pod>;
}
