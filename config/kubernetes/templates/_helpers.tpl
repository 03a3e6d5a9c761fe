{{- define "llmp.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "llmp.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "llmp.labels" -}}
{{ include "llmp.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "llmp.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "llmp.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "llmp.name" .) -}}
{{- end -}}

{{- define "llmp.adminUiPath" -}}
{{- .Values.settings.ADMIN_UI_PATH | default "/admin/" -}}
{{- end -}}

{{- define "llmp.publicUrl" -}}
{{- if .Values.oidc.publicUrl -}}
{{ .Values.oidc.publicUrl }}
{{- else if and .Values.managementIngress.enabled .Values.managementIngress.hosts -}}
https://{{ first .Values.managementIngress.hosts }}
{{- else -}}
{{ fail "oidc.issuer requires managementIngress or oidc.publicUrl: the identity provider sends people back there" }}
{{- end -}}
{{- end -}}

{{/* The texts of the files that this chart stores; empty for none. */}}
{{- define "llmp.roles" -}}
{{- with .Values.oidc -}}
{{- if and .issuer (not .roles.existingConfigMap) -}}
{{ required "oidc.issuer requires oidc.roles.content or oidc.roles.existingConfigMap" .roles.content }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "llmp.prices" -}}
{{- with .Values.prices -}}
{{- if not .existingConfigMap -}}{{ .content }}{{- end -}}
{{- end -}}
{{- end -}}
