from collections.abc import Callable
from types import ModuleType
from typing import Any

from budgetkit import accuracy as accuracy
from budgetkit import figures as figures
from budgetkit import presets as presets
from budgetkit import state as state
from budgetkit.accuracy import corpora as corpora
from budgetkit.accuracy import streaming as streaming
from budgetkit.accuracy.document_claims import claims as claims
from budgetkit.accuracy.explorer import AccuracyExplorer as AccuracyExplorer
from budgetkit.accuracy.fitting import fit_bill as fit_bill
from budgetkit.app.app import App as App
from budgetkit.app.card import DesignCard as DesignCard
from budgetkit.budget import Allocation as Allocation
from budgetkit.budget import Budget as Budget
from budgetkit.budget import Reserve as Reserve
from budgetkit.budget import Share as Share
from budgetkit.counters import calibrate as calibrate
from budgetkit.counters import counter as counter
from budgetkit.deciding import solve as solve
from budgetkit.deciding import tune as tune
from budgetkit.endpoints import load_ipython_extension as load_ipython_extension
from budgetkit.endpoints import provider_counter as provider_counter
from budgetkit.endpoints import watch as watch
from budgetkit.explorer import BudgetExplorer as BudgetExplorer
from budgetkit.framing import FRAMINGS as FRAMINGS
from budgetkit.framing import Framing as Framing
from budgetkit.framing import RequestCount as RequestCount
from budgetkit.framing import count_answer as count_answer
from budgetkit.framing import count_request as count_request
from budgetkit.live import Conversation as Conversation
from budgetkit.live import MemoryTokens as MemoryTokens
from budgetkit.live import assembly as assembly
from budgetkit.live import build as build
from budgetkit.live import build_async as build_async
from budgetkit.live import memory_tokens as memory_tokens
from budgetkit.live import trim as trim
from budgetkit.models import model as model
from budgetkit.models.thinking import thinking as thinking
from budgetkit.plan import Decision as Decision
from budgetkit.plan import Grant as Grant
from budgetkit.plan import Item as Item
from budgetkit.plan import Plan as Plan
from budgetkit.plan import allocate as allocate
from budgetkit.plan import allocate_many as allocate_many
from budgetkit.plan import cut_share as cut_share
from budgetkit.plan import fit as fit
from budgetkit.plan import sweep as sweep
from budgetkit.pruning import policies as policies
from budgetkit.replay import Replay as Replay
from budgetkit.replay import cost as cost
from budgetkit.replay import evidence_shares as evidence_shares
from budgetkit.replay import losses as losses
from budgetkit.replay import outlook as outlook
from budgetkit.replay import prompt_cache as prompt_cache
from budgetkit.replay import rank_policies as rank_policies
from budgetkit.replay import replay as replay
from budgetkit.replay.evidence import evidence as evidence
from budgetkit.replay.explorer import ConversationExplorer as ConversationExplorer
from budgetkit.replay.section_orders import section_orders as section_orders
from budgetkit.trace import Message as Message
from budgetkit.trace import Trace as Trace
from budgetkit.trace import list_traces as list_traces
from budgetkit.trace import load_trace as load_trace
from budgetkit.trace import load_traces as load_traces
from budgetkit.trace import near_duplicates as near_duplicates
from budgetkit.trace import redact as redact
from budgetkit.trace import shipped_traces as shipped_traces
from budgetkit.truncation import cutter as cutter
from budgetkit.truncation import truncate as truncate

__version__: str
__all__: list[str]

def homes(package: ModuleType) -> dict[str, str]: ...
def lazily(package: ModuleType, known: dict[str, str]) -> Callable[[str], Any]: ...
