"""Topics: nodes in a small graph over a workspace, which collect memories and have relations to each other."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from memories.models.memory import Memory
from memoryhub.ids import PublicIdField
from workspaces.models import User, Workspace

NODE_NAME_LENGTH = 100
KIND_LENGTH = 50
NODE_DESCRIPTION_LENGTH = 1000
RELATION_LENGTH = 80


class MemoryNodeQuerySet(models.QuerySet["MemoryNode"]):
    def visible_to(self, user: User) -> MemoryNodeQuerySet:
        """Filter to the nodes that this person may see, and annotate each with the person's ``role`` in its workspace.

        A node owned by another person is visible only while it has a live memory that this person may see.
        """
        seen = Memory.objects.visible_to(user).live().filter(nodes=models.OuterRef("pk"))
        shown = Q(owner=None) | Q(owner=user) | models.Exists(seen)
        role = models.F("workspace__memberships__role")
        return self.filter(shown, workspace__memberships__user=user).annotate(role=role)  # type: ignore[no-redef]  # the model declares it


class MemoryNode(models.Model):
    """A person, project or thing that memories are about. Members see every node without ``owner``."""

    role: str  # the reader's role, annotated by ``visible_to``
    depth: int  # distance in relations, set by ``memories.topics.neighbours``
    public_id = PublicIdField(prefix="node")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memory_nodes")
    name = models.CharField(max_length=NODE_NAME_LENGTH)
    folded = models.TextField(editable=False)  # the case-folded name, by which names are compared
    kind = models.CharField(max_length=KIND_LENGTH, blank=True, help_text="Such as person or project.")
    description = models.TextField(max_length=NODE_DESCRIPTION_LENGTH, blank=True)
    gathers_by_name = models.BooleanField(
        "Gather memories that name it",
        default=False,
        help_text="Memories that contain the name are linked when they are saved or changed.",
    )
    memories = models.ManyToManyField(Memory, through="NodeMemory", related_name="nodes")
    unlinked = models.ManyToManyField(
        Memory,
        related_name="+",
        blank=True,
        help_text="Taken out by a person, and not gathered by name again.",
    )
    differs_from = models.ManyToManyField(
        "self", blank=True, help_text="Topics that look like this one, and that a person said are others."
    )
    owner = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who made it of personal memories, or alone in their own workspace. Others see it once it gathers "
        "a memory that they may see.",
    )
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = MemoryNodeQuerySet.as_manager()

    class Meta:
        ordering = ["folded", "id"]
        constraints = [
            models.UniqueConstraint(
                "workspace",
                "folded",
                Coalesce("owner", 0, output_field=models.BigIntegerField()),
                name="one_node_of_a_name",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class NodeMemory(models.Model):
    """The link between a node and a memory that it has collected."""

    node = models.ForeignKey(MemoryNode, on_delete=models.CASCADE, related_name="links")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="node_links")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "node memories"
        constraints = [models.UniqueConstraint(fields=["node", "memory"], name="one_link_a_memory")]

    def __str__(self) -> str:
        return f"memory {self.memory_id} of node {self.node_id}"


class NodeRelation(models.Model):
    """A named relation between two nodes of a workspace, such as "Maria works on Apollo"."""

    source = models.ForeignKey(MemoryNode, on_delete=models.CASCADE, db_index=False, related_name="relations")
    target = models.ForeignKey(MemoryNode, on_delete=models.CASCADE, related_name="relations_to")
    relation = models.CharField(max_length=RELATION_LENGTH)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["source", "target", "relation"], name="one_relation_of_a_type"),
            models.CheckConstraint(condition=~Q(source=F("target")), name="related_to_another"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.relation} {self.target_id}"


ASSET_NAME_LENGTH = 150
RASTER = ("image/png", "image/jpeg", "image/gif", "image/webp")  # browsers run no code in these
PICTURE_BYTES = 2_000_000


class Asset(models.Model):
    """A file attached to a memory. Its bytes are stored by ``memoryhub.stored_files``."""

    public_id = PublicIdField(prefix="asset")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="assets")
    name = models.CharField(max_length=ASSET_NAME_LENGTH)
    content_type = models.CharField(
        max_length=50, help_text="From its first bytes, never as the sender says."
    )
    size = models.BigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64, help_text="Of the content, hexadecimal.")
    file_name = models.CharField(max_length=40, unique=True, editable=False)  # random; memoryhub.stored_files
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_picture(self) -> bool:
        """Return whether the file is an image of a safe type, small enough to be shown on a card."""
        return self.content_type in RASTER and self.size <= PICTURE_BYTES
