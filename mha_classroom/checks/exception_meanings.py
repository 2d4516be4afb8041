"""What an exception means, in terms of shapes and in a learner's words."""

import linecache
import re
import traceback
from pathlib import Path

__all__ = ["explain", "learners_frames"]

MOST = 60  # characters that are quoted from what an exception says
LONGEST = 500  # characters of an exception that are searched: some patterns take the cube of it

MEANINGS = [
    (
        r"view size is not compatible",
        "`view` only describes the numbers as they lie in memory, and after a transpose, permute, "
        "expand or slice they do not lie in the order you ask for. `reshape` copies when it has "
        "to. (To leave a transpose out may silence the error, and mixes up the numbers.)",
    ),
    (
        r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)",
        "A product of ({0}, {1}) with ({2}, {3}) needs the two inner sizes to agree: {1} is not "
        "{2}. Is one of them another tensor than you mean, or transposed, or a part of what it "
        "should be, or do they stand in the wrong order?",
    ),
    (
        r"Expected size for first two dimensions of batch2 tensor to be: \[(\d+), (\d+)\] "
        r"but got: \[(\d+), (\d+)\]",
        "In a product of batches two pairs of numbers have to agree. Matrices in the first factor "
        "and in the second: {0} and {2}. Columns of the first factor and rows of the second: {1} "
        "and {3}.",
    ),
    (
        r"shape '\[(.*?-1.*?)\]' is invalid for input of size (\d+)",
        "A reshape keeps all numbers: there are {1} of them, and no size in the place of -1 makes "
        "[{0}] multiply to that.",
    ),
    (
        r"shape '\[(.*?)\]' is invalid for input of size (\d+)",
        "A reshape keeps all numbers: there are {1} of them, and the sizes [{0}] do not multiply "
        "to that.",
    ),
    (
        r"The size of tensor a \((?:0\) must match the size of tensor b \(\d+|"
        r"\d+\) must match the size of tensor b \(0)\) at non-singleton dimension (\d+)",
        "On axis {0} one of the two tensors has no entry at all. A slice that begins past the last "
        "entry, or ends where it begins, is empty: does a loop go too far, or over another axis?",
    ),
    (
        r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at "
        r"non-singleton dimension (\d+)",
        "On axis {2} one tensor has {0} entries and the other {1}. Sizes have to agree, or one "
        "of them has to be 1: is an axis missing or in another place?",
    ),
    (
        r"(?:expected (?:m1 and m2|scalar type|mat1 and mat2) to have the same dtype|"
        r"expected scalar type|must have the same dtype|Input dtypes must be the same)",
        "Two dtypes meet in one product. A tensor that you make yourself needs the dtype of the "
        "inputs, `dtype=X.dtype`, and a mask for `where` is boolean. If `__init__` copies a "
        "parameter, the copy keeps its dtype when the module is turned to float64: use the "
        "parameter itself.",
    ),
    (
        r"a (?:leaf Variable|view of a leaf Variable) that requires grad",
        "A parameter may not be changed in place while gradients are recorded: "
        "`with torch.no_grad():` around the copying.",
    ),
    (
        r"Boolean value of Tensor with more than one value is ambiguous",
        "An `if` needs one True or False, and a tensor holds many; so do `and`, `in`, and Python's "
        "`max` and `sorted`. For a whole tensor use `torch.where`, `masked_fill` or `amax`; to ask "
        "whether an argument was given, `is not None`. If the name in your `if` "
        "should stand for True or False: are the arguments in your def line in the task's order?",
    ),
    (
        r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got "
        r"(-?\d+)\)",
        "You name axis {2}, and this tensor has only the axes {0} to {1}.",
    ),
    (
        r"(Sequential|Linear|LayerNorm|Embedding|Dropout|Softmax|GELU)\.forward\(\) takes (\d+) "
        r"positional arguments? but (\d+)",
        "`{0}` is PyTorch's: its forward takes {1} arguments, itself included, and it is called "
        "with {2}.",
    ),
    (
        r"(\w+)\(\) received an invalid combination of arguments|"
        r"takes from \d+ to 0 positional arguments",
        "PyTorch's function does not take these arguments, or not in this order, or one of them is "
        "not what you think it is: `max(1)` gives a pair of tensors. Give them by "
        "their names: `dim=1`.",
    ),
    (
        r"(reshape|view|expand|permute|flatten|zeros|ones)\(\) takes 1 positional argument but",
        "What is given is not of one kind. Is one of the sizes a float (`/` gives one, `//` a "
        "whole number), a dtype without its name `dtype=`, or a tuple beside numbers (a star takes "
        "it apart: `*X.shape[:2]`)?",
    ),
    (
        r"mask must be a boolean tensor.*, got float$",
        "A float stands in the place of `mask`. Is it meant to be the dropout? Write its name: "
        "`dropout=…`.",
    ),
    (
        r"(\w+)\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) "
        r"given",
        "`{0}` is called with {2} arguments and its definition names {1}. Look at the call, and if "
        "the function is yours, compare its `def` line with the one in the task.",
    ),
    (
        r"missing (\d+) required positional arguments?: (.*)",
        "A call leaves out {1}. Is it in your code? If it is your own function that is called, "
        "does its `def` line give every argument the default that the task asks for? If it is a "
        "method: is it called on an object, and not on its class?",
    ),
    (
        r"name '(\w+)' is not defined",
        "`{0}` is not known here. Is it spelled as where you define it, and has that cell been "
        "run since the kernel started?",
    ),
    (
        r"'NoneType' object (?:has no attribute|is not subscriptable|is not iterable)|"
        r"unsupported operand type\(s\) for .*'NoneType'",
        "Something is None where a tensor, a list or another object was expected. Does a function "
        "that you call have no `return`? A method that changes a list in place, like `sort`, "
        "returns None, too. Or was an optional argument left out, does a layer have no bias, or a "
        "dict no such key?",
    ),
    (
        r"masked_fill_? only supports boolean masks|expected BoolTensor|"
        r"only supports boolean masks",
        "`masked_fill` wants a boolean mask: compare numbers (`<`, `>=`, `== 0`) to get one.",
    ),
    (
        r"cannot reshape|unflatten: Provided sizes",
        "The sizes that you ask for do not multiply to the size that is there, or the tensor has "
        "no numbers at all: did a slice take none?",
    ),
    (
        r"value cannot be converted to type \S+ without overflow",
        "A number is too large, or too small, for the dtype of the tensor that it is put into.",
    ),
    (
        r"unsupported operand type\(s\) for .*'(?:tuple|list)'|must be Tensor, not (?:tuple|list)",
        "Python cannot compute this with a tuple or a list. Does something that you call return "
        "several results, of which you want one? Or is it to be a tensor, or a set like the other "
        "one?",
    ),
    (
        r"size mismatch, got input \((\d+)\), mat \((\d+)x(\d+)\), vec \((\d+)\)",
        "A matrix ({1}, {2}) times a vector needs a vector of {2} numbers, and this one has {3}. "
        "Is the matrix transposed, or is it another matrix that belongs there?",
    ),
    (
        r"The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)",
        "Something with {1} entries is to be put where {0} are. Which of the two has the wrong "
        "size: the place, or what is put there?",
    ),
    (
        r"Sizes of tensors must match except in dimension (\d+)",
        "What is put together with `cat` may differ on axis {0} only. Is that the axis that you "
        "mean, and are the pieces cut along the one that you mean?",
    ),
    (
        r"stack expects each tensor to be equal size",
        "`stack` needs pieces of one shape. Are they cut in equal parts?",
    ),
    (
        r"not enough values to unpack \(expected ((?:at least )?\d+), got (\d+)\)",
        "The left side asks for {0}, and the right side has {1}. Does what you call return fewer, "
        "does a tensor have fewer axes than you think, is `.shape` missing, or is a text split "
        "that does not have the separator in it?",
    ),
    (
        r"(too many|not enough) values to unpack",
        "The left side names another number of things than the right side has. Of a tensor "
        "`split` takes how long each piece is, `chunk` how many pieces there are. A text is "
        "split wherever the separator stands.",
    ),
    (
        r"tuple index out of range",
        "There are fewer than you ask for: the last of n has the number n - 1. If it is a shape, "
        "the tensor has fewer axes. If it is pieces of a tensor: `split` takes how long each is, "
        "`chunk` how many there are, and both cut axis 0 unless they are told another.",
    ),
    (
        r"too many indices for tensor of dimension (\d+)|"
        r"einsum\(\): the number of subscripts .* does not match the number of dimensions",
        "You name more axes of a tensor, or fewer, than it has. Print its shape.",
    ),
    (
        r"einsum\(\): subscript (\w) has size (\d+) for operand (\d+) which does not broadcast "
        r"with previously seen size (\d+)",
        "One letter stands for one size wherever it occurs. Here {0} is {3} in a tensor before and "
        "{1} in tensor number {2} of the call, counted from 0.",
    ),
    (
        r"index (-?\d+) is out of bounds for (?:dimension|axis) (\d+) with size (\d+)",
        "An axis has {2} entries, counted from 0, and you ask for number {0}.",
    ),
    (
        r"'(\w+)' object is not callable",
        "Something is called like a function, and it is a `{0}`. Is a bracket too many, or does a "
        "name stand for something else than you think?",
    ),
    (
        r"cannot assign (?:module|parameter)s? before Module\.__init__\(\) call",
        "`super().__init__()` has to be the first line of your `__init__`.",
    ),
    (
        r"cannot assign '.*?' (?:object )?(?:as|to) parameter '(\w+)'",
        "`{0}` is a parameter of the module, and what takes its place has to be one, too: "
        "`nn.Parameter(...)`.",
    ),
    (
        r"too many dimensions 'str'|can't convert .*str",
        "A tensor holds numbers, no texts. Use a list, or a dict, for names.",
    ),
    (
        r"list index out of range",
        "The list has fewer elements than you ask for. Counting starts from 0.",
    ),
    (
        r"'(tuple|list)' object has no attribute '(\w+)'",
        "A {0} has no `{1}`. Does something that you call return several results, of which you "
        "want one, or is it to be a tensor, or a list?",
    ),
    (
        r"only one element tensors can be converted|a Tensor with \d+ elements cannot be converted",
        "A single number is asked for, and the tensor holds several. `float` and the functions of "
        "`math` take one; those of `torch`, like `torch.log`, take them all. To join a list of "
        "tensors into one, use `torch.stack`: `torch.tensor` cannot do it.",
    ),
    (
        r"negative dimension (-\d+)",
        "A tensor is to be made with a size of {0}. What is subtracted from what there?",
    ),
    (
        r"needed for gradient computation has been modified by an inplace operation",
        "No gradient can be taken through the output: += or its like, or dropout with "
        "inplace=True, changed a tensor that an earlier step still needs for its gradient. "
        "Y = Y + ... makes a new one.",
    ),
    (
        r"linalg\.\S+: A must be batches of square matrices, but they are (\d+) by (\d+)",
        "Only a square matrix can be inverted, or solved for exactly: it has as many rows as "
        "columns. This one has {0} rows and {1} columns.",
    ),
    (
        r"linalg\.\S+: .*the input matrix is singular",
        "This matrix is square, and yet it has no inverse: one of its rows follows from the "
        "others. So it is with A.T @ A where A has fewer rows than columns, or columns that "
        "depend on each other, and with A @ A.T where two rows of A are the same.",
    ),
    (
        r"one_hot is only applicable to index tensor of type LongTensor",
        "one_hot takes whole numbers of the dtype int64, which PyTorch calls LongTensor: `.long()` "
        "makes them so.",
    ),
    (
        r"Class values must be (?:non-negative|smaller than num_classes)",
        "one_hot takes numbers from 0 to num_classes - 1. Which of yours is another one?",
    ),
    (
        r"shape of the mask \[(.*?)\] at index \d+ does not match the shape of the indexed tensor "
        r"\[(.*?)\] at index (\d+)",
        "A boolean mask says of each place along an axis whether it is kept. Yours has the shape "
        "[{0}] and the tensor [{1}]: it needs one entry for each place of axis {2}.",
    ),
    (
        r"tensors used as indices must be long|Expected dtype int(?:32/int|32 or int)64 for index|"
        r"argument #1 'indices' to have one of the following scalar types",
        "Places are whole numbers, and the dtype of your tensor is a float: `.long()` makes them "
        "so. Or are they scores, where `argmax` gives places? An empty list becomes a tensor of "
        "floats, too, unless it is made with `dtype=torch.long`.",
    ),
    (
        r"list indices must be integers or slices, not (list|tuple|Tensor|set|dict|str|NoneType)",
        "A list takes one place or a slice in its brackets, and here it gets a `{0}`. Several "
        "places at once, or one on each axis, can be asked of a tensor.",
    ),
    (
        r"list indices must be integers|are valid indices \(got (?:float|numpy)|slice indices must "
        r"be|'float' object cannot be interpreted as an integer|must be tuple of ints, not float",
        "A float stands where a whole number is needed: a place, a size or how often. `/` gives "
        "a float, even where nothing is left over; `//` gives a whole number.",
    ),
    (
        r"only integer tensors of a single element can be converted to an index",
        "A tensor stands where one whole number is needed: as a place in a list, as the end of a "
        "`range`, or among the numbers for `torch.tensor`. Make the list a tensor or go through "
        "its places with a loop; take `int(...)`; of several tensors `torch.stack` makes one.",
    ),
    (
        r"expected Tensor as element \d+ in argument \d+, but got (\w+)",
        "`stack` and `cat` put tensors together, and among the pieces is a `{0}`. Of a list of "
        "numbers `torch.tensor` makes one tensor.",
    ),
    (
        r"stack expects a non-empty TensorList|expected a non-empty list of Tensors",
        "There is nothing to put together: the list is empty. What is it that fills it, and may it "
        "be that in this case nothing does?",
    ),
    (
        r"zero-dimensional tensor .* cannot be concatenated",
        "`cat` puts pieces one after another along an axis, and a single number has none. `stack` "
        "makes the axis.",
    ),
    (
        r"mean\(\): could not infer output dtype|not implemented for '(?:Long|Int|Bool)'",
        "This is computed of floats, and the tensor holds whole numbers or True and False: "
        "`.double()` or `.float()` first.",
    ),
    (
        r"(\w+)\(\): argument '\w+' \(position \d+\) must be Tensor, not (int|float|bool)",
        "`torch.{0}` takes a tensor, and gets a number of Python (`{1}`). Of such numbers "
        "`math` computes, or `torch.tensor(...)` makes a tensor.",
    ),
    (
        r"'(int|float|bool)' object (?:has no attribute|is not iterable|is not subscriptable)|"
        r"object of type '(int|float|bool)' has no len",
        "A single number of Python stands where something else was expected: a tensor, a list, or "
        "an object such as a config. Is it the result of `.item()`, `len` or `sum`, or one element "
        "or attribute where you mean all?",
    ),
    (
        r"(?:iteration over|len\(\) of) a 0-d tensor|invalid index of a 0-dim tensor",
        "This tensor is a single number without axes. Has a step before added everything up, where "
        "you mean along one axis?",
    ),
    (
        r"division by zero",
        "The number that is divided by can be 0: in which case that the task allows?",
    ),
    (
        r"does not require grad and does not have a grad_fn",
        "What `backward` is called on does not depend on a parameter, or the way there is cut: by "
        "`no_grad`, `detach`, `.item()`, or a tensor made anew of the numbers.",
    ),
    (
        r"'torch\.return_types\.(\w+)' object",
        "`{0}` returns two things, the numbers and where they stood: `.values` and `.indices`. "
        "`amax` and `amin` return numbers only.",
    ),
    (
        r"selected index k out of range",
        "More are asked for than the axis has entries. Which axis does it look along (the last, "
        "unless `dim` says another), and can k be larger than it?",
    ),
    (
        r"duplicate dims are not allowed|appears multiple times in the list of dims",
        "An axis is named twice. Negative numbers count from the end, so two names can mean one "
        "axis.",
    ),
    (
        r"is an empty sequence|for input\.numel\(\) == 0|pop from empty list",
        "There is nothing to choose from: it is empty. In which case that the task allows does "
        "that happen?",
    ),
    (
        r"expected sequence of length (\d+) at dim \d+ \(got (\d+)\)",
        "The rows of a tensor have one length, and the lists that you make it of have {0} and {1} "
        "entries.",
    ),
    (
        r"only one dimension can be inferred",
        "One size may be left open with -1, and two are.",
    ),
    (
        r"indexing tensors could not be broadcast together with shapes (\[.*?\]), (\[.*?\])",
        "Two lists of places are read side by side, the first of one with the first of the other, "
        "and yours have the shapes {0} and {1}. For all pairs of them give one an axis more: "
        "`[:, None]`, or index twice.",
    ),
    (
        r"operator, (?:on a|with two) bool tensors? is not supported|"
        r"bitwise_\w+. not implemented|only implemented on integer and Boolean",
        "`~`, `&` and `|` are for True and False, `-` for numbers. A comparison makes a mask of "
        "numbers, `.double()` numbers of a mask.",
    ),
    (
        r"Tensors must have same number of dimensions: got (\d+) and (\d+)",
        "The pieces for `cat` have {0} and {1} axes. Has one of them lost an axis, or has it to "
        "get one?",
    ),
    (
        r"inconsistent tensor size, expected tensor \[(\d+)\] and src \[(\d+)\]",
        "A dot product needs lists of one length, and these have {0} and {1} numbers.",
    ),
    (
        r"index out of range in self",
        "An embedding has a row for each id from 0 on, and one of the ids is past its last row. Do "
        "these ids belong to this table?",
    ),
    (
        r"einsum\(\): output subscript (\w) does not appear",
        "The letter {0} stands right of the arrow and belongs to none of the tensors.",
    ),
    (
        r"maximum recursion depth",
        "The function calls itself more often than Python allows, about 1,000 times: without an "
        "end, or once for each step of something long.",
    ),
]


def explain(error):
    """Return what an exception means for the learner, "" if there is nothing to add."""
    text = f"{error}"[:LONGEST]
    if isinstance(error, KeyError) and not text.startswith(("'module name", "'parameter name")):
        return (
            f"The dict has no key {text}, or the set no such element. How are its keys spelled, or "
            "was it taken out before?"
        )
    for pattern, meaning in MEANINGS:
        found = re.search(pattern, text)
        if found:
            return meaning.format(*(str(part)[:MOST] for part in found.groups()))
    return ""


def learners_frames(error):
    """The (file, line number, function, source line) of the learner's code an error came through.

    An error that came from another process brings them with it.
    """
    if hasattr(error, "learners_frames"):
        return error.learners_frames
    frames = []
    for frame, number in traceback.walk_tb(error.__traceback__):
        file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
        library = {"site-packages", "dist-packages"} & set(Path(file).parts)
        if module.split(".")[0] not in ("mha_course", "mha_classroom") and not library:
            line = linecache.getline(file, number, frame.f_globals).strip()
            frames.append((file, number, frame.f_code.co_name, line))
    return frames
