"""Pods of KubeRay, in kind, minikube or a cluster of the user's own."""
