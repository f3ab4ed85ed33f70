"""Is the proof a proof? Every sign flipped in a backward, and every term left out, must be noticed.

Each backward in core is read as a syntax tree. One mutant a place: + becomes -, += becomes -=, a returned
gradient or what enters another backward is negated, or a statement that accumulates is left out. The
gradient checks must fail for all.
"""

import ast
import copy
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache, partial

import pytest

from mini_bert.checks.check_all import HEADS_OF_MODELS, models_to_check
from mini_bert.checks.heads import check_task_head
from mini_bert.checks.models import check_model, shrink
from mini_bert.core import modules
from mini_bert.core.gradcheck import check_operation
from mini_bert.core.ops import Operation, operations
from mini_bert.core.registry import words

EMPTY = ("Alibi", "NoHead", "NoPositions", "Term")                    # nothing to compute
COMPONENTS = [*(info.name.removeprefix("mini_bert.core.") for info in pkgutil.walk_packages(
    modules.__path__, "mini_bert.core.modules.") if not info.ispkg), "selection", "model", "gradients"]
ALSO = {"backward_from_logits", "backward_from_hidden", "compute_mlm_loss_and_gradients", "add_mlm_gradients"}


def mutants(function: ast.FunctionDef) -> Iterator[tuple[str, ast.FunctionDef]]:
    """(what was done, the function so changed)."""
    places = {id(node): number for number, node in enumerate(ast.walk(function))}
    for node in ast.walk(function):
        number = places[id(node)]
        changed = copy.deepcopy(function)
        twin = list(ast.walk(changed))[number]
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub) \
                and not (isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant)
                         and isinstance(node.right.value, int) and isinstance(node.left, ast.Name)):
            twin.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield f"line {line}: sign flipped", changed
        # (`complete` is about memory and `hook` for readers, not about the numbers; what `require_finite` refuses is
        # tested with huge weights)
        if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
                                               and not ast.unparse(node.value.func).endswith(
                                                   (".complete", "require_finite", "ctx.hook"))):
            left_out = copy.deepcopy(function)
            for parent in ast.walk(left_out):
                for field in ("body", "orelse"):
                    block = getattr(parent, field, None)
                    if isinstance(block, list):
                        block[:] = [ast.Pass(lineno=line, col_offset=0)
                                    if isinstance(item, ast.AugAssign | ast.Expr) and item.lineno == line else item
                                    for item in block]
            yield f"line {line}: left out", left_out
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("backward"):
            twin.args[0] = ast.UnaryOp(ast.USub(), twin.args[0])
            yield f"line {line}: argument negated", changed
        # (add_mlm_gradients returns a loss and a count, which are no gradients)
        if isinstance(node, ast.Return) and node.value is not None and function.name != "add_mlm_gradients":
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for i, value in enumerate(values):
                if isinstance(value, ast.Constant):
                    continue
                negated = copy.deepcopy(function)
                returned = list(ast.walk(negated))[number]
                minus = ast.parse("(lambda g: None if g is None else -g)(0)", mode="eval").body
                minus.args = [copy.deepcopy(value)]
                if isinstance(returned.value, ast.Tuple):
                    returned.value.elts[i] = minus
                else:
                    returned.value = minus
                yield f"line {line}: gradient {i} negated", negated


def backward_functions(tree: ast.Module) -> Iterator[tuple[str | None, ast.FunctionDef]]:
    """(class or None, function) of everything that computes gradients."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and (node.name.endswith("backward") or node.name in ALSO):
            yield None, node
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and not item.decorator_list \
                        and (item.name.endswith("backward") or item.name in ALSO) \
                        and ast.unparse(item.body[-1]) != "return None":        # a place for others to fill
                    yield node.name, item


def compiled(module, function: ast.FunctionDef):
    """The function, run in a copy of its module's namespace."""
    tree = ast.fix_missing_locations(ast.Module([function], []))
    namespace = dict(vars(module))
    exec(compile(tree, module.__file__, "exec"), namespace)
    return namespace[function.name]


OPERATION_MUTANTS = [
    pytest.param(operation, what, function, id=f"{operation.name}, {what}")
    for operation in operations()
    for _, backward in backward_functions(ast.parse(inspect.getsource(inspect.getmodule(operation.forward))))
    for what, function in mutants(backward)
]


@pytest.mark.parametrize(("operation", "what", "function"), OPERATION_MUTANTS)
def test_a_mutated_operation_is_noticed(operation: Operation, what: str, function: ast.FunctionDef, monkeypatch):
    mutated = compiled(inspect.getmodule(operation.forward), function)
    try:
        results = check_operation(operation.name, operation.forward, mutated, operation.checks)
        if any(not result.passed for result in results):
            return
        # what a module alone passes to the operation, its models must notice
        for name in (*COMPONENTS, *(f"ops.{other.name}" for other in operations())):
            module = importlib.import_module(f"mini_bert.core.{name}")
            for known in [known for known, value in vars(module).items() if value is operation.backward]:
                monkeypatch.setattr(module, known, mutated)
        variants = sorted(MODELS, key=lambda name: ": " not in name)       # those of one word first
        assert any(not result.passed for name in variants for result in check_model(name, MODELS[name]))
    except AssertionError:
        raise
    except Exception:
        return                                     # it does not even run


def component_mutants():
    for name in COMPONENTS:
        module = importlib.import_module(f"mini_bert.core.{name}")
        for owner, backward in backward_functions(ast.parse(inspect.getsource(module))):
            if owner in EMPTY:
                continue
            for what, function in mutants(backward):
                yield pytest.param(module, owner, what, function, id=f"{name}.{owner}.{function.name}, {what}")


MODELS = models_to_check()
# most parts are in BERT's layout with a pooler; the rest is tried when that one notices nothing
RICH = {"rich": shrink(type(next(iter(MODELS.values()))).from_dict({
    **next(config for name, config in MODELS.items() if "bert-tiny" in name).to_dict(), "pooler": "tanh",
    "final_layernorm": True}), next(iter(MODELS.values())))}


SMOOTH = type(RICH["rich"]).from_dict({**RICH["rich"].to_dict(), "activation": "gelu"})
COMPONENT_MUTANTS = list(component_mutants())
FILES = {importlib.import_module(f"mini_bert.core.{name}").__file__ for name in COMPONENTS}


@cache
def lines_run(name: str) -> frozenset[tuple[str, int]]:
    """The lines of the components that the check of a model runs."""
    seen: set[tuple[str, int]] = set()

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in FILES:
            return None
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    def once(name, case, params, loss, rng, value_of=None):
        loss(params.zeros_like())
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mini_bert.checks.models.check_directions", once)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            list(check_model(name, {**RICH, **MODELS}[name]))
        finally:
            sys.settrace(before)
    return frozenset(seen)


@pytest.fixture(scope="session")
def ran() -> dict[str, frozenset[tuple[str, int]]]:
    return {name: lines_run(name) for name in {**RICH, **MODELS}}


@pytest.mark.parametrize(("module", "owner", "what", "function"), COMPONENT_MUTANTS)
def test_a_mutated_component_is_noticed(module, owner, what, function, ran, monkeypatch):
    monkeypatch.setattr(module if owner is None else getattr(module, owner), function.name, compiled(module, function))
    line = int(what.split(":")[0].removeprefix("line "))
    # a model that does not run the line cannot notice anything; a statement may begin some lines above
    likely = [name for name, lines in ran.items() if any((module.__file__, line - i) in lines for i in range(4))]
    checks = [partial(check_model, name, {**RICH, **MODELS}[name]) for name in likely or ran]
    heads = [partial(check_task_head, word, SMOOTH) for word in (*HEADS_OF_MODELS, *words("task_head"))]
    for check in heads + checks if module.__name__.endswith(("heads.tasks", "heads.transform")) else checks + heads:
        try:
            if any(not result.passed for result in check()):
                return
        except Exception:
            return                                 # it does not even run
    pytest.fail("no gradient check noticed it")


def test_there_are_mutants_of_every_backward():
    mutated = {(param.values[0].name, param.values[2].name) for param in OPERATION_MUTANTS}
    assert mutated == {(operation.name, operation.backward.__name__) for operation in operations()}
    mutated = {(param.values[1], param.values[3].name) for param in COMPONENT_MUTANTS}
    trees = (ast.parse(inspect.getsource(importlib.import_module(f"mini_bert.core.{name}"))) for name in COMPONENTS)
    assert mutated == {(owner, function.name) for tree in trees for owner, function in backward_functions(tree)
                       if owner not in EMPTY}


@pytest.mark.parametrize("name", [*RICH, *MODELS])
def test_what_is_compiled_without_a_mutation_passes(name: str, monkeypatch):
    """Otherwise a fault of this harness would look like a mutant that was noticed."""
    for component in COMPONENTS:
        module = importlib.import_module(f"mini_bert.core.{component}")
        for owner, backward in backward_functions(ast.parse(inspect.getsource(module))):
            monkeypatch.setattr(module if owner is None else getattr(module, owner), backward.name,
                                compiled(module, backward))
    assert all(result.passed for result in check_model(name, {**RICH, **MODELS}[name]))


def test_an_operation_that_is_compiled_without_a_mutation_passes():
    for operation in operations():
        module = inspect.getmodule(operation.forward)
        (_, backward), = backward_functions(ast.parse(inspect.getsource(module)))
        results = check_operation(operation.name, operation.forward, compiled(module, backward), operation.checks)
        assert all(result.passed for result in results)
