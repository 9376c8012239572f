"""Whose rows those of persons and places are, and those of the packages that they rest on."""

from __future__ import annotations

from dataclasses import replace

from workspaces.isolation.rules import (
    PERSON,
    Rule,
    nobodys,
    of_either,
    of_person,
    of_place,
    of_workspace,
    shut,
    with_row,
)

_MINE = f"id = {PERSON}"
_OWN = f"owner_id IS NULL OR owner_id = {PERSON}"
_MY_PUBLIC_ID = f"(SELECT u.public_id FROM workspaces_user u WHERE u.id = {PERSON})"
_CHOSEN_HERE = (
    "EXISTS (SELECT 1 FROM workspaces_workspace w WHERE w.connection_id = {row}.id) OR "
    "EXISTS (SELECT 1 FROM chat_chat c WHERE c.connection_id = {row}.id)"
)
RIGHTS = "which rights there are is the same for all"

RULES: dict[str, Rule] = {
    # Themselves, and whom they know: who shares a workspace with them, or did and left something there.
    "workspaces.User": Rule(f"{_MINE} OR memoryhub_knows(id)", changes=_MINE),
    "workspaces.PersonPicture": Rule(
        f"user_id = {PERSON} OR memoryhub_knows(user_id)", changes=f"user_id = {PERSON}"
    ),
    "workspaces.User_groups": replace(of_person(), only_read=True),  # rights are given in the admin
    "workspaces.User_user_permissions": replace(of_person(), only_read=True),
    "workspaces.Workspace": of_workspace(column="id"),
    "workspaces.Membership": of_workspace(),
    "workspaces.Agent": of_workspace(),
    "workspaces.ApiKey": of_person(),
    "workspaces.SignIn": of_person(),
    "workspaces.Spent": of_person(),
    "workspaces.DataRequest": of_person(),
    "workspaces.DoneRequest": of_person(),
    "workspaces.AuditEvent": Rule(
        f"by_id = {_MY_PUBLIC_ID} OR workspace_id IN (SELECT w.public_id FROM workspaces_workspace w)"
    ),
    "workspaces.Artifact": of_workspace(_OWN, names="created_by_id"),
    "workspaces.ArtifactVersion": with_row("workspaces_artifact", "artifact_id"),
    # The shared ones, their own, and of others' those that something names which they see: it says that it is lost.
    "workspaces.Connection": Rule(
        f"owner_id IS NULL OR owner_id = {PERSON} OR {_CHOSEN_HERE}", changes=f"owner_id = {PERSON}"
    ),
    "workspaces.Document": of_workspace(_OWN, names="created_by_id"),
    "workspaces.DocumentPicture": with_row("workspaces_document", "document_id"),
    "workspaces.DocumentVersion": with_row("workspaces_document", "document_id"),
    "workspaces.DocumentPassage": of_workspace(_OWN),
    "workspaces.PlaceStatistics": of_place(),
    "workspaces.CommonWord": of_place(),
    "workspaces.VectorIndex": of_place(),
    "workspaces.PassageVector": of_place(),
    "workspaces.PassageWord": of_place(),
    "workspaces.EmbeddingModel": nobodys("embedders are the installation's"),
    "workspaces.Invitation": of_workspace(),
    "workspaces.OAuthClient": nobodys("programs that registered belong to nobody"),
    "workspaces.OAuthCode": of_person(),
    "workspaces.OAuthToken": with_row("workspaces_apikey", "key_id"),
    "workspaces.ModelUse": of_either(),
    "workspaces.Budget": of_either(),
    "workspaces.Retention": of_workspace(),
    "workspaces.GroupGrant": of_person(),
    "workspaces.DirectoryGroup": nobodys("groups are the directory's", only_read=True),
    "workspaces.DirectoryGroup_members": replace(of_person(), only_read=True),
    "workspaces.WaitingMail": nobodys("mails wait sealed, with a key that the database does not have"),
    "workspaces.Webhook": of_workspace(),
    "workspaces.WebhookDelivery": with_row("workspaces_webhook", "webhook_id"),
    "account.EmailAddress": of_person(),
    "account.EmailConfirmation": with_row("account_emailaddress", "email_address_id"),
    "mfa.Authenticator": of_person(),
    "socialaccount.SocialAccount": of_person(),
    "socialaccount.SocialToken": with_row("socialaccount_socialaccount", "account_id"),
    "socialaccount.SocialApp": shut("it holds the installation's secret"),
    "sessions.Session": shut("who reads one is signed in as its person"),
    "admin.LogEntry": of_person(),
    "auth.Permission": nobodys(RIGHTS, only_read=True),
    "auth.Group": nobodys(RIGHTS, only_read=True),
    "auth.Group_permissions": nobodys(RIGHTS, only_read=True),
    "contenttypes.ContentType": nobodys("kinds of rows are the same for all", only_read=True),
    "django_q.Task": nobodys("jobs are told ids, and of a failed one only its kind is kept"),
    "django_q.Schedule": nobodys("what comes by itself is the installation's", only_read=True),
    "django_q.OrmQ": nobodys("jobs are told ids alone, and whoever saves something queues one"),
}

# Tables without a model, under their own names.
TABLES: dict[str, Rule] = {
    "workspaces_cache": nobodys("counts under names that are hashed or say no more than an address"),
    "workspaces_written": nobodys("how far the log was when somebody last wrote: their key and a number"),
    "django_migrations": nobodys("which version this is", only_read=True),
}
