{{- define "refdesk.name" -}}
{{- printf "%s-refdesk" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "refdesk.labels" -}}
app.kubernetes.io/name: refdesk
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Which pods: a dictionary of the root as `root` and the part as `part`. */}}
{{- define "refdesk.selector" -}}
app.kubernetes.io/name: refdesk
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "refdesk.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The names by which clients call the servers: the service's, the Ingress's, and those of the settings. */}}
{{- define "refdesk.hosts" -}}
{{- $name := include "refdesk.name" . -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) -}}
{{- $hosts = append $hosts (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- if .Values.ingress.enabled }}{{ $hosts = append $hosts .Values.ingress.host }}{{ end -}}
{{- with get .Values.settings "ALLOWED_HOSTS" }}{{ $hosts = append $hosts . }}{{ end -}}
{{- join "," $hosts -}}
{{- end -}}

{{/* Where what scales the workers finds the queue. */}}
{{- define "refdesk.queue" -}}
{{- if .Values.worker.autoscaling.redis -}}
{{ .Values.worker.autoscaling.redis }}
{{- else if .Values.redis.enabled -}}
{{ include "refdesk.name" . }}-redis.{{ .Release.Namespace }}.svc:6379
{{- else -}}
{{- fail "worker.autoscaling needs the host and port of your Redis: set worker.autoscaling.redis" -}}
{{- end -}}
{{- end -}}

{{/* What every container of refdesk has: its image, settings, rights and a folder to write to. */}}
{{- define "refdesk.container" -}}
image: {{ include "refdesk.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - {name: REFDESK_HOME, value: /data}
  {{- if .Values.postgresql.enabled }}
  - name: REFDESK_STORE
    valueFrom:
      secretKeyRef: {name: {{ include "refdesk.name" . }}-db-app, key: uri}
  {{- end }}
  {{- if and .Values.postgresql.enabled .Values.postgresql.readReplicas (gt (int .Values.postgresql.instances) 1) }}
  - name: DATABASE_PASSWORD
    valueFrom:
      secretKeyRef: {name: {{ include "refdesk.name" . }}-db-app, key: password}
  - name: REFDESK_STORE_READ
    value: postgresql://refdesk:$(DATABASE_PASSWORD)@{{ include "refdesk.name" . }}-db-ro:5432/refdesk
  {{- end }}
  {{- if .Values.redis.enabled }}
  - {name: REFDESK_REDIS, value: "redis://{{ include "refdesk.name" . }}-redis:6379/0"}
  {{- end }}
  - {name: REFDESK_ALLOWED_HOSTS, value: {{ include "refdesk.hosts" . | quote }}}
  {{- range $name, $value := omit .Values.settings "ALLOWED_HOSTS" }}
  - {name: REFDESK_{{ $name }}, value: {{ $value | quote }}}
  {{- end }}
{{- with .Values.existingSecret }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* What every pod of refdesk has beside its container. */}}
{{- define "refdesk.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
terminationGracePeriodSeconds: 45
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - {name: data, emptyDir: {sizeLimit: 2Gi}}
  - {name: tmp, emptyDir: {sizeLimit: 256Mi}}
{{- end -}}
