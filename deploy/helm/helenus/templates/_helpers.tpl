{{- define "helenus.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- $name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "helenus.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "helenus.labels" -}}
{{ include "helenus.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "helenus.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "helenus.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "helenus.secret" -}}
{{ .Values.secret.existingSecret | default (include "helenus.name" .) }}
{{- end }}

{{/* The file of settings. */}}
{{- define "helenus.settings" -}}
store = {{ required "store is required: the bucket that the nodes share, as s3://bucket/prefix" .Values.store | quote }}
cluster_name = {{ .Values.clusterName | quote }}
data_center = {{ .Values.dataCenter | quote }}
listen = "0.0.0.0:9042"
http = "0.0.0.0:9180"
rpc = "0.0.0.0:7000"
cache_dir = "/data/cache"
cache_disk_bytes = {{ printf "%sB" .Values.cache.size | quote }}
{{- if .Values.authentication.enabled }}
authenticator = "PasswordAuthenticator"
authorizer = "CassandraAuthorizer"
{{- end }}
{{- with .Values.tls.clients }}
{{- if .secretName }}
tls_certificate = "/etc/helenus/tls/clients/tls.crt"
tls_key = "/etc/helenus/tls/clients/tls.key"
{{- if .verifyClients }}
tls_authority = "/etc/helenus/tls/clients/ca.crt"
{{- end }}
{{- if .optional }}
tls_optional = "true"
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.tls.nodes.secretName }}
rpc_tls_certificate = "/etc/helenus/tls/nodes/tls.crt"
rpc_tls_key = "/etc/helenus/tls/nodes/tls.key"
rpc_tls_authority = "/etc/helenus/tls/nodes/ca.crt"
{{- end }}
{{- range $name, $value := .Values.settings }}
{{ $name }} = {{ $value | toString | quote }}
{{- end }}
{{- end }}
