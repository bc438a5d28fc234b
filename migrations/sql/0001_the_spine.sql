-- The spine: people, definitions, cases, durable work, messages, history.
-- TEXT with CHECK, no enum. tenant_id leads every unique key and every index that lists by it (R13).
-- History, request, refusal and audit rows carry ids and no foreign keys (design, "Locks").

-- ---- the clock (R11): the only two functions that name it; the test suite replaces both
CREATE FUNCTION baton_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT statement_timestamp()';
CREATE FUNCTION baton_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- ---- people
CREATE TABLE person (
  id uuid CONSTRAINT pk_person PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  username text NOT NULL,
  display_name text NOT NULL,
  sort_key text NOT NULL,
  password_hash text,
  role text NOT NULL CONSTRAINT ck_person_role CHECK (role IN ('user', 'operator', 'administrator')),
  theme text NOT NULL DEFAULT 'system' CONSTRAINT ck_person_theme CHECK (theme IN ('system', 'light', 'dark')),
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  disabled_at timestamptz,
  CONSTRAINT uq_person_username UNIQUE (tenant_id, username)
);
CREATE TABLE person_group (
  person_id uuid NOT NULL CONSTRAINT fk_person_group_person REFERENCES person ON DELETE CASCADE,
  tenant_id text NOT NULL DEFAULT '',
  group_key text NOT NULL,
  CONSTRAINT pk_person_group PRIMARY KEY (person_id, group_key)
);
CREATE INDEX ix_person_group_key ON person_group (tenant_id, group_key);
CREATE TABLE web_session (
  token_hash bytea CONSTRAINT pk_web_session PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  person_id uuid NOT NULL CONSTRAINT fk_web_session_person REFERENCES person ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  last_seen_at timestamptz NOT NULL DEFAULT baton_clock(),
  expires_at timestamptz NOT NULL,
  data jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ix_web_session_expires ON web_session (expires_at);
CREATE INDEX ix_web_session_person ON web_session (person_id);
CREATE TABLE login_attempt (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_login_attempt PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  username_key text NOT NULL,
  address text NOT NULL,
  at timestamptz NOT NULL DEFAULT baton_clock(),
  succeeded boolean NOT NULL
);
CREATE INDEX ix_login_attempt_username ON login_attempt (tenant_id, username_key, at);
CREATE INDEX ix_login_attempt_address ON login_attempt (address, at);
CREATE TABLE api_key (
  id uuid CONSTRAINT pk_api_key PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  person_id uuid NOT NULL CONSTRAINT fk_api_key_person REFERENCES person ON DELETE CASCADE,
  name text NOT NULL,
  token_hash bytea NOT NULL CONSTRAINT uq_api_key_token UNIQUE,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
CREATE INDEX ix_api_key_person ON api_key (person_id);

-- ---- definitions
CREATE TABLE deployment (
  id uuid CONSTRAINT pk_deployment PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  name text NOT NULL DEFAULT '',
  deployed_by text NOT NULL,
  deployed_at timestamptz NOT NULL DEFAULT baton_clock()
);
CREATE INDEX ix_deployment_tenant ON deployment (tenant_id, deployed_at);
CREATE TABLE process_definition (
  id uuid CONSTRAINT pk_process_definition PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  key text NOT NULL,
  version integer NOT NULL,
  name text NOT NULL DEFAULT '',
  sort_key text NOT NULL DEFAULT '',
  status text NOT NULL DEFAULT 'active' CONSTRAINT ck_process_definition_status CHECK (status IN ('active', 'suspended', 'deleting')),
  deployment_id uuid NOT NULL CONSTRAINT fk_process_definition_deployment REFERENCES deployment,
  resource_name text NOT NULL,
  content_hash bytea NOT NULL,
  xml bytea NOT NULL,
  documentation text NOT NULL DEFAULT '',
  has_none_start boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT uq_process_definition_version UNIQUE (tenant_id, key, version)
);
CREATE INDEX ix_process_definition_deployment ON process_definition (deployment_id);

-- ---- cases
CREATE TABLE process_instance (
  id uuid CONSTRAINT pk_process_instance PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  root_id uuid NOT NULL,
  parent_id uuid,
  parent_token_id uuid,
  definition_id uuid NOT NULL CONSTRAINT fk_process_instance_definition REFERENCES process_definition,
  business_key text,
  status text NOT NULL DEFAULT 'running' CONSTRAINT ck_process_instance_status CHECK (status IN ('running', 'completed', 'cancelled')),
  mark text CONSTRAINT ck_process_instance_mark CHECK (mark IN ('suspending', 'suspended', 'cancelling')),
  revision bigint NOT NULL DEFAULT 0,
  started_by text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT baton_clock(),
  ended_at timestamptz,
  ended_by text,
  final_variables jsonb,
  CONSTRAINT ck_process_instance_ended CHECK ((status IN ('completed', 'cancelled')) = (ended_at IS NOT NULL))
) WITH (fillfactor = 90);
CREATE INDEX ix_process_instance_root ON process_instance (root_id);
CREATE INDEX ix_process_instance_definition ON process_instance (definition_id, started_at);
CREATE INDEX ix_process_instance_running ON process_instance (tenant_id, started_at, id) WHERE status = 'running';
CREATE INDEX ix_process_instance_all ON process_instance (tenant_id, started_at, id);
CREATE INDEX ix_process_instance_key ON process_instance (tenant_id, business_key) WHERE business_key IS NOT NULL;
CREATE TABLE scope (
  id uuid CONSTRAINT pk_scope PRIMARY KEY,
  instance_id uuid NOT NULL CONSTRAINT fk_scope_instance REFERENCES process_instance ON DELETE CASCADE,
  parent_id uuid CONSTRAINT fk_scope_parent REFERENCES scope ON DELETE CASCADE,
  token_id uuid,
  element_id text,
  path uuid[] NOT NULL,
  counters jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ix_scope_instance ON scope (instance_id);
CREATE INDEX ix_scope_parent ON scope (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX ix_scope_token ON scope (token_id) WHERE token_id IS NOT NULL;
CREATE TABLE token (
  id uuid CONSTRAINT pk_token PRIMARY KEY,
  instance_id uuid NOT NULL, -- no foreign key: its scope has one, and a token goes with its scope
  root_id uuid NOT NULL,
  scope_id uuid NOT NULL CONSTRAINT fk_token_scope REFERENCES scope ON DELETE CASCADE,
  element_id text NOT NULL,
  flow_id text,
  status text NOT NULL DEFAULT 'waiting' CONSTRAINT ck_token_status CHECK (status IN ('waiting', 'joining', 'listening', 'failed')),
  arrived_at timestamptz NOT NULL DEFAULT baton_clock()
) WITH (fillfactor = 90);
ALTER TABLE scope ADD CONSTRAINT fk_scope_token FOREIGN KEY (token_id) REFERENCES token ON DELETE CASCADE;
CREATE INDEX ix_token_scope ON token (scope_id);
CREATE INDEX ix_token_instance ON token (instance_id);
CREATE INDEX ix_token_quiet ON token (scope_id) WHERE status IN ('joining', 'listening');
CREATE TABLE variable (
  scope_id uuid NOT NULL CONSTRAINT fk_variable_scope REFERENCES scope ON DELETE CASCADE,
  name text NOT NULL,
  type text NOT NULL CONSTRAINT ck_variable_type CHECK (type IN ('string', 'integer', 'double', 'boolean', 'date', 'datetime', 'json', 'null')),
  value jsonb NOT NULL,
  revision bigint NOT NULL DEFAULT 1,
  CONSTRAINT pk_variable PRIMARY KEY (scope_id, name)
);

-- ---- user tasks: kept with a final status; inbox_entry holds only the open ones, a row a candidate
CREATE TABLE user_task (
  id uuid CONSTRAINT pk_user_task PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  instance_id uuid NOT NULL CONSTRAINT fk_user_task_instance REFERENCES process_instance ON DELETE CASCADE,
  root_id uuid NOT NULL,
  definition_id uuid NOT NULL,
  token_id uuid CONSTRAINT fk_user_task_token REFERENCES token,
  element_id text NOT NULL,
  name text NOT NULL,
  sort_key text NOT NULL,
  process_name text NOT NULL DEFAULT '',
  business_key text,
  about text NOT NULL DEFAULT '',
  status text NOT NULL DEFAULT 'open' CONSTRAINT ck_user_task_status CHECK (status IN ('open', 'claimed', 'completed', 'cancelled')),
  assignee text,
  assigned_at timestamptz,
  assigned_by text,
  candidate_users text[] NOT NULL DEFAULT '{}',
  candidate_groups text[] NOT NULL DEFAULT '{}',
  priority smallint NOT NULL DEFAULT 50 CONSTRAINT ck_user_task_priority CHECK (priority BETWEEN 0 AND 100),
  due_at timestamptz,
  follow_up_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  ended_at timestamptz,
  ended_by text,
  version bigint NOT NULL DEFAULT 0,
  CONSTRAINT ck_user_task_ended CHECK ((status IN ('completed', 'cancelled')) = (ended_at IS NOT NULL)),
  CONSTRAINT ck_user_task_claimed CHECK (status <> 'claimed' OR assignee IS NOT NULL),
  CONSTRAINT ck_user_task_open CHECK (status <> 'open' OR assignee IS NULL)
);
CREATE INDEX ix_user_task_live ON user_task (tenant_id, created_at, id) WHERE status IN ('open', 'claimed');
CREATE INDEX ix_user_task_assignee ON user_task (tenant_id, assignee, created_at, id) WHERE status = 'claimed';
CREATE INDEX ix_user_task_token ON user_task (token_id) WHERE token_id IS NOT NULL;
CREATE INDEX ix_user_task_instance ON user_task (instance_id);
CREATE INDEX ix_user_task_root ON user_task (root_id) WHERE status IN ('open', 'claimed');
CREATE INDEX ix_user_task_definition ON user_task (definition_id, element_id) WHERE status IN ('open', 'claimed');
CREATE INDEX ix_user_task_ended_by ON user_task (tenant_id, ended_by, ended_at) WHERE status = 'completed';
CREATE TABLE inbox_entry (
  task_id uuid NOT NULL CONSTRAINT fk_inbox_entry_task REFERENCES user_task ON DELETE CASCADE,
  tenant_id text NOT NULL DEFAULT '',
  kind text NOT NULL CONSTRAINT ck_inbox_entry_kind CHECK (kind IN ('user', 'group')),
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT pk_inbox_entry PRIMARY KEY (task_id, kind, name)
);
CREATE INDEX ix_inbox_entry_candidate ON inbox_entry (tenant_id, kind, name, created_at, task_id);

-- ---- durable work: three tables, one life cycle (R1)
CREATE TABLE job (
  id uuid CONSTRAINT pk_job PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  kind text NOT NULL CONSTRAINT ck_job_kind CHECK (kind IN ('service', 'timer', 'start_timer', 'message', 'cancel')),
  topic text NOT NULL DEFAULT '',
  instance_id uuid CONSTRAINT fk_job_instance REFERENCES process_instance ON DELETE CASCADE,
  root_id uuid,
  definition_id uuid NOT NULL CONSTRAINT fk_job_definition REFERENCES process_definition ON DELETE CASCADE,
  token_id uuid CONSTRAINT fk_job_token REFERENCES token ON DELETE CASCADE,
  subscription_id uuid,
  element_id text NOT NULL,
  status text NOT NULL DEFAULT 'available' CONSTRAINT ck_job_status CHECK (status IN ('available', 'leased', 'completed', 'failed', 'cancelled')),
  due_at timestamptz NOT NULL,
  available_at timestamptz NOT NULL,
  priority smallint NOT NULL DEFAULT 5 CONSTRAINT ck_job_priority CHECK (priority BETWEEN 0 AND 9),
  level smallint NOT NULL DEFAULT 5 CONSTRAINT ck_job_level CHECK (level BETWEEN 0 AND 10),
  held text[] NOT NULL DEFAULT '{}',
  lease_owner text,
  lease_expires_at timestamptz,
  leased_at timestamptz,
  lease_number bigint NOT NULL DEFAULT 0,
  lease_seconds integer,
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL DEFAULT 3,
  retry text,
  lock_first boolean NOT NULL DEFAULT false,
  last_error text,
  payload jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  ended_at timestamptz,
  CONSTRAINT ck_job_lease_if_leased CHECK ((status = 'leased') = (lease_owner IS NOT NULL) AND (status = 'leased') = (lease_expires_at IS NOT NULL) AND (status = 'leased') = (leased_at IS NOT NULL)),
  CONSTRAINT ck_job_ended CHECK ((status IN ('completed', 'cancelled')) = (ended_at IS NOT NULL)),
  CONSTRAINT ck_job_attempts CHECK (attempts >= 0 AND attempts <= max_attempts),
  CONSTRAINT ck_job_case CHECK ((kind = 'start_timer') = (instance_id IS NULL) OR kind = 'message')
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ix_job_due ON job (kind, topic, level, available_at, id) WHERE status = 'available' AND held = '{}';
CREATE INDEX ix_job_lease ON job (lease_expires_at, id) WHERE status = 'leased';
CREATE INDEX ix_job_failed ON job (tenant_id, created_at, id) WHERE status = 'failed';
CREATE INDEX ix_job_token ON job (token_id) WHERE token_id IS NOT NULL;
CREATE INDEX ix_job_instance ON job (instance_id);
CREATE INDEX ix_job_list ON job (tenant_id, created_at, id);
CREATE UNIQUE INDEX uq_job_start_timer ON job (definition_id, element_id, due_at) WHERE kind = 'start_timer';
CREATE TABLE external_task (
  id uuid CONSTRAINT pk_external_task PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  topic text NOT NULL,
  instance_id uuid NOT NULL CONSTRAINT fk_external_task_instance REFERENCES process_instance ON DELETE CASCADE,
  root_id uuid NOT NULL,
  definition_id uuid NOT NULL,
  token_id uuid NOT NULL CONSTRAINT fk_external_task_token REFERENCES token ON DELETE CASCADE,
  element_id text NOT NULL,
  status text NOT NULL DEFAULT 'available' CONSTRAINT ck_external_task_status CHECK (status IN ('available', 'leased', 'completed', 'failed', 'cancelled')),
  due_at timestamptz NOT NULL,
  available_at timestamptz NOT NULL,
  priority smallint NOT NULL DEFAULT 5 CONSTRAINT ck_external_task_priority CHECK (priority BETWEEN 0 AND 9),
  level smallint NOT NULL DEFAULT 5 CONSTRAINT ck_external_task_level CHECK (level BETWEEN 0 AND 10),
  held text[] NOT NULL DEFAULT '{}',
  lease_owner text,
  lease_expires_at timestamptz,
  leased_at timestamptz,
  lease_number bigint NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL DEFAULT 3,
  retry text,
  lock_first boolean NOT NULL DEFAULT false,
  last_error text,
  payload jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  ended_at timestamptz,
  CONSTRAINT ck_external_task_lease_if_leased CHECK ((status = 'leased') = (lease_owner IS NOT NULL) AND (status = 'leased') = (lease_expires_at IS NOT NULL) AND (status = 'leased') = (leased_at IS NOT NULL)),
  CONSTRAINT ck_external_task_ended CHECK ((status IN ('completed', 'cancelled')) = (ended_at IS NOT NULL)),
  CONSTRAINT ck_external_task_attempts CHECK (attempts >= 0 AND attempts <= max_attempts)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ix_external_task_due ON external_task (tenant_id, topic, level, available_at, id) WHERE status = 'available' AND held = '{}';
CREATE INDEX ix_external_task_lease ON external_task (lease_expires_at, id) WHERE status = 'leased';
CREATE INDEX ix_external_task_failed ON external_task (tenant_id, created_at, id) WHERE status = 'failed';
CREATE INDEX ix_external_task_token ON external_task (token_id);
CREATE INDEX ix_external_task_instance ON external_task (instance_id);
CREATE TABLE delivery (
  id uuid CONSTRAINT pk_delivery PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  kind text NOT NULL CONSTRAINT ck_delivery_kind CHECK (kind IN ('http', 'mail')),
  destination text NOT NULL,
  instance_id uuid CONSTRAINT fk_delivery_instance REFERENCES process_instance ON DELETE CASCADE,
  root_id uuid,
  definition_id uuid,
  element_id text,
  status text NOT NULL DEFAULT 'available' CONSTRAINT ck_delivery_status CHECK (status IN ('available', 'leased', 'completed', 'failed', 'cancelled', 'skipped')),
  due_at timestamptz NOT NULL,
  available_at timestamptz NOT NULL,
  priority smallint NOT NULL DEFAULT 5 CONSTRAINT ck_delivery_priority CHECK (priority BETWEEN 0 AND 9),
  level smallint NOT NULL DEFAULT 5 CONSTRAINT ck_delivery_level CHECK (level BETWEEN 0 AND 10),
  held text[] NOT NULL DEFAULT '{}',
  lease_owner text,
  lease_expires_at timestamptz,
  leased_at timestamptz,
  lease_number bigint NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL DEFAULT 8,
  retry text,
  last_error text,
  request jsonb NOT NULL,
  response jsonb,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  ended_at timestamptz,
  CONSTRAINT ck_delivery_lease_if_leased CHECK ((status = 'leased') = (lease_owner IS NOT NULL) AND (status = 'leased') = (lease_expires_at IS NOT NULL) AND (status = 'leased') = (leased_at IS NOT NULL)),
  CONSTRAINT ck_delivery_ended CHECK ((status IN ('completed', 'cancelled', 'skipped')) = (ended_at IS NOT NULL)),
  CONSTRAINT ck_delivery_attempts CHECK (attempts >= 0 AND attempts <= max_attempts)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ix_delivery_due ON delivery (kind, level, available_at, id) WHERE status = 'available' AND held = '{}';
CREATE INDEX ix_delivery_lease ON delivery (lease_expires_at, id) WHERE status = 'leased';
CREATE INDEX ix_delivery_failed ON delivery (tenant_id, created_at, id) WHERE status = 'failed';
CREATE INDEX ix_delivery_instance ON delivery (instance_id);
CREATE INDEX ix_delivery_list ON delivery (tenant_id, created_at, id);

-- ---- messages
CREATE TABLE subscription (
  id uuid CONSTRAINT pk_subscription PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  kind text NOT NULL CONSTRAINT ck_subscription_kind CHECK (kind IN ('catch', 'start')),
  message_name text NOT NULL,
  correlation_key text NOT NULL DEFAULT '',
  definition_id uuid NOT NULL CONSTRAINT fk_subscription_definition REFERENCES process_definition ON DELETE CASCADE,
  instance_id uuid CONSTRAINT fk_subscription_instance REFERENCES process_instance ON DELETE CASCADE,
  root_id uuid,
  token_id uuid CONSTRAINT fk_subscription_token REFERENCES token ON DELETE CASCADE,
  element_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT ck_subscription_catch CHECK ((kind = 'catch') = (token_id IS NOT NULL) AND (kind = 'catch') = (instance_id IS NOT NULL))
);
CREATE INDEX ix_subscription_message ON subscription (tenant_id, message_name, correlation_key, created_at, id);
CREATE INDEX ix_subscription_token ON subscription (token_id) WHERE token_id IS NOT NULL;
CREATE INDEX ix_subscription_definition ON subscription (definition_id);
CREATE INDEX ix_subscription_instance ON subscription (instance_id) WHERE instance_id IS NOT NULL;
CREATE UNIQUE INDEX uq_subscription_start ON subscription (tenant_id, definition_id, element_id) WHERE kind = 'start';
CREATE TABLE message (
  id uuid CONSTRAINT pk_message PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  name text NOT NULL,
  correlation_key text NOT NULL DEFAULT '',
  variables jsonb NOT NULL DEFAULT '{}',
  published_by text NOT NULL,
  published_at timestamptz NOT NULL DEFAULT baton_clock(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ix_message_key ON message (tenant_id, name, correlation_key, published_at, id);
CREATE INDEX ix_message_expires ON message (expires_at);

-- ---- incidents: exactly one foreign key, to the leaf that is stuck
CREATE TABLE incident (
  id uuid CONSTRAINT pk_incident PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  kind text NOT NULL,
  message text NOT NULL,
  detail text NOT NULL DEFAULT '',
  instance_id uuid,
  root_id uuid,
  definition_id uuid,
  element_id text,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  job_id uuid CONSTRAINT fk_incident_job REFERENCES job ON DELETE CASCADE,
  external_task_id uuid CONSTRAINT fk_incident_external_task REFERENCES external_task ON DELETE CASCADE,
  delivery_id uuid CONSTRAINT fk_incident_delivery REFERENCES delivery ON DELETE CASCADE,
  token_id uuid CONSTRAINT fk_incident_token REFERENCES token ON DELETE CASCADE,
  CONSTRAINT ck_incident_one_leaf CHECK (num_nonnulls(job_id, external_task_id, delivery_id, token_id) = 1),
  CONSTRAINT uq_incident_job UNIQUE (job_id),
  CONSTRAINT uq_incident_external_task UNIQUE (external_task_id),
  CONSTRAINT uq_incident_delivery UNIQUE (delivery_id),
  CONSTRAINT uq_incident_token UNIQUE (token_id)
);
CREATE INDEX ix_incident_list ON incident (tenant_id, created_at, id);
CREATE INDEX ix_incident_instance ON incident (instance_id);

-- ---- what was asked, refused, done
CREATE TABLE request (
  tenant_id text NOT NULL DEFAULT '',
  actor text NOT NULL,
  id text NOT NULL,
  hash text NOT NULL,
  outcome jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT pk_request PRIMARY KEY (tenant_id, actor, id, hash)
);
CREATE INDEX ix_request_created ON request (created_at);
CREATE TABLE refusal (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_refusal PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT baton_clock(),
  tenant_id text NOT NULL DEFAULT '',
  actor text NOT NULL,
  command text NOT NULL,
  item_id uuid,
  reason text NOT NULL,
  detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ix_refusal_at ON refusal (tenant_id, at);
CREATE INDEX ix_refusal_item ON refusal (item_id);
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_audit PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT baton_clock(),
  tenant_id text NOT NULL DEFAULT '',
  actor text NOT NULL,
  action text NOT NULL,
  object_kind text NOT NULL,
  object_id text NOT NULL,
  reason text NOT NULL DEFAULT '',
  detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ix_audit_at ON audit (tenant_id, at, id);
CREATE TABLE history (
  id bigint GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT baton_clock(),
  tenant_id text NOT NULL DEFAULT '',
  root_id uuid,
  instance_id uuid,
  definition_id uuid,
  kind text NOT NULL,
  element_id text,
  actor text NOT NULL,
  item_id uuid,
  data jsonb NOT NULL DEFAULT '{}',
  xid xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (at);
CREATE INDEX ix_history_instance ON history (instance_id, id);
CREATE INDEX ix_history_item ON history (item_id) WHERE item_id IS NOT NULL;
CREATE INDEX ix_history_at ON history USING brin (at); -- append-only, so block ranges find the last day for the overview

-- ---- workers, pauses, marks
CREATE TABLE worker (
  id uuid CONSTRAINT pk_worker PRIMARY KEY,
  host text NOT NULL,
  pid integer NOT NULL,
  version text NOT NULL DEFAULT '',
  started_at timestamptz NOT NULL DEFAULT baton_clock(),
  heartbeat_at timestamptz NOT NULL DEFAULT baton_clock(),
  last_acquired_at timestamptz,
  slots integer NOT NULL DEFAULT 0,
  busy integer NOT NULL DEFAULT 0,
  kinds jsonb NOT NULL DEFAULT '[]',
  draining boolean NOT NULL DEFAULT false,
  stopped_at timestamptz
);
CREATE INDEX ix_worker_heartbeat ON worker (heartbeat_at) WHERE stopped_at IS NULL;
CREATE TABLE pause (
  tenant_id text NOT NULL DEFAULT '',
  kind text NOT NULL,
  topic text NOT NULL,
  paused_by text NOT NULL,
  paused_at timestamptz NOT NULL DEFAULT baton_clock(),
  reason text NOT NULL DEFAULT '',
  CONSTRAINT pk_pause PRIMARY KEY (tenant_id, kind, topic)
);
CREATE TABLE watermark (
  name text CONSTRAINT pk_watermark PRIMARY KEY,
  at timestamptz NOT NULL,
  swept_at timestamptz NOT NULL DEFAULT baton_clock()
);
