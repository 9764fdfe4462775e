/* The quick way of `probe.emit`: what `instrument/writer.py` does, for the calls that are common.

   Whatever is not common (no room, an open gap, a value that needs converting or can't be stored, a
   call from inside another one) is handed to the Python writer, which stands at the same `Ring`, so
   there is one place that rolls, counts losses and refuses. The layout of a record is told in
   `layout.py`, whose numbers `configure` passes in. All runs under the GIL. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "crc.h"

#define COLUMNS_MAX 32
#define LISTS_MAX 16
#define SITES 256 /* a power of two */
#define HEADER_SIZE 40
#define COUNT_MAX 65535

typedef struct {
    PyObject_HEAD
    PyObject *map;    /* the segment's mmap, or None */
    Py_buffer bytes;  /* its memory while there is one */
    PyObject *orders; /* shared by the writers of a process */
    long long end, seq, first;
    char gap, busy;
} Ring;

typedef struct {
    PyObject *name;
    uint32_t bit;
    int size; /* 8, 4 or 1 bytes */
    int listable;
} Column;

/* What a call site gives: for each of its columns, in the order of the layout, which argument. */
typedef struct {
    PyObject *names; /* the tuple of the call itself: equal sites may have two */
    int count;
    unsigned char column[COLUMNS_MAX], argument[COLUMNS_MAX];
} Site;

static struct {
    Column columns[COLUMNS_MAX];
    int column_count;
    long long segment_size;
    int commit_word, commit_shift, op_codes;
    PyObject *slowly; /* the Python writer's way in */
} layout;

static Site sites[SITES];
static uint64_t epoch = 1;
static _Thread_local struct {
    uint64_t epoch;
    Ring *ring; /* held: a thread that ends leaves it behind, one of the process's few */
} mine;

/* Ring ---------------------------------------------------------------------------------------- */

static void let_go(Ring *self) {
    if (self->bytes.obj) PyBuffer_Release(&self->bytes);
    Py_CLEAR(self->map);
}

static int ring_init(Ring *self, PyObject *args, PyObject *kwargs) {
    PyObject *orders;
    if (!PyArg_ParseTuple(args, "O:Ring", &orders)) return -1;
    if (!PyIter_Check(orders)) {
        PyErr_SetString(PyExc_TypeError, "orders must be an iterator of int");
        return -1;
    }
    Py_XSETREF(self->orders, Py_NewRef(orders));
    self->end = layout.segment_size; /* full, so that the first record takes a segment */
    return 0;
}

static void ring_dealloc(Ring *self) {
    let_go(self);
    Py_CLEAR(self->orders);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *ring_get_map(Ring *self, void *closure) {
    return Py_NewRef(self->map ? self->map : Py_None);
}

static int ring_set_map(Ring *self, PyObject *map, void *closure) {
    let_go(self);
    if (!map || map == Py_None) return 0;
    if (PyObject_GetBuffer(map, &self->bytes, PyBUF_WRITABLE) < 0) return -1;
    if (self->bytes.len < layout.segment_size) {
        let_go(self);
        PyErr_SetString(PyExc_ValueError, "the map is smaller than a segment");
        return -1;
    }
    self->map = Py_NewRef(map);
    return 0;
}

static PyMemberDef ring_members[] = {
    {"end", T_LONGLONG, offsetof(Ring, end), 0, NULL},
    {"seq", T_LONGLONG, offsetof(Ring, seq), 0, NULL},
    {"first", T_LONGLONG, offsetof(Ring, first), 0, NULL},
    {"gap", T_BOOL, offsetof(Ring, gap), 0, NULL},
    {"busy", T_BOOL, offsetof(Ring, busy), 0, NULL},
    {NULL},
};

static PyGetSetDef ring_getset[] = {
    {"map", (getter)ring_get_map, (setter)ring_set_map, NULL, NULL},
    {NULL},
};

static PyTypeObject RingType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "slotscope.instrument.native.ring.Ring",
    .tp_basicsize = sizeof(Ring),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Where a writer stands in its segment: `place.Place`, compiled.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)ring_init,
    .tp_dealloc = (destructor)ring_dealloc,
    .tp_members = ring_members,
    .tp_getset = ring_getset,
};

/* A call ---------------------------------------------------------------------------------------- */

/* What a call says, gathered before anything is written. */
typedef struct {
    uint32_t ones, lists;
    Py_ssize_t n; /* -1 until a list has told it */
    int one_count, list_count, view_count;
    long long one[COLUMNS_MAX];
    unsigned char one_size[COLUMNS_MAX];
    PyObject *list[LISTS_MAX]; /* a list or tuple, or NULL where there is a view */
    unsigned char list_size[LISTS_MAX];
    Py_buffer view[LISTS_MAX]; /* of list number i */
} Said;

/* An int that fits in `size` bytes; 0 if it is none. */
static int fits(PyObject *value, int size, long long *out) {
    int overflow;
    if (!PyLong_Check(value)) return 0;
    *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return 0;
    if (size == 4) return *out == (int32_t)*out;
    return size == 8 || (*out >= 0 && *out <= 255);
}

static int take_view(Said *said, PyObject *value, int size) {
    Py_buffer *view = &said->view[said->list_count];
    if (PyObject_GetBuffer(value, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) {
        PyErr_Clear();
        view->obj = NULL;
        return 0;
    }
    const char *format = view->format ? view->format : "B";
    int exact = size == 4 ? !strcmp(format, "i") : !strcmp(format, "l") || !strcmp(format, "q");
    if (view->ndim == 1 && view->itemsize == size && exact) return 1;
    PyBuffer_Release(view);
    return 0;
}

static int take_list(Said *said, PyObject *value, const Column *column) {
    Py_ssize_t n;
    if (!column->listable || said->list_count == LISTS_MAX) return 0;
    if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
        n = PySequence_Fast_GET_SIZE(value);
        said->list[said->list_count] = value;
        said->view[said->list_count].obj = NULL;
    } else {
        if (!PyObject_CheckBuffer(value) || !take_view(said, value, column->size)) return 0;
        n = said->view[said->list_count].shape[0];
        said->list[said->list_count] = NULL;
    }
    said->list_size[said->list_count++] = (unsigned char)column->size;
    said->lists |= column->bit;
    if (said->n < 0) said->n = n;
    return said->n == n && n > 0 && n <= COUNT_MAX;
}

static int gather(Said *said, const Site *site, PyObject *const *values) {
    said->ones = said->lists = 0;
    said->n = -1;
    said->one_count = said->list_count = 0;
    for (int i = 0; i < site->count; i++) {
        const Column *column = &layout.columns[site->column[i]];
        PyObject *value = values[site->argument[i]];
        if (value == Py_None) continue;
        if (fits(value, column->size, &said->one[said->one_count])) {
            said->one_size[said->one_count++] = (unsigned char)column->size;
            said->ones |= column->bit;
        } else if (PyLong_Check(value) || !take_list(said, value, column)) {
            return 0;
        }
    }
    return 1;
}

static void let_views_go(Said *said) {
    for (int i = 0; i < said->list_count; i++)
        if (said->view[i].obj) PyBuffer_Release(&said->view[i]);
}

static char *put_ones(const Said *said, char *at) {
    for (int i = 0; i < said->one_count; i++) {
        memcpy(at, &said->one[i], said->one_size[i]); /* little-endian: the low bytes come first */
        at += said->one_size[i];
    }
    return at;
}

/* Zeros up to the next multiple of 8 from the record's beginning. */
static char *pad(char *begin, char *at) {
    size_t padding = -(size_t)(at - begin) & 7;
    memset(at, 0, padding);
    return at + padding;
}

/* A list's values; NULL where one of them can't be stored as it is. */
static char *put_list(PyObject *list, int size, char *at) {
    PyObject **items = PySequence_Fast_ITEMS(list);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    long long value;
    for (Py_ssize_t i = 0; i < n; i++, at += size) {
        if (items[i] == Py_None) value = size == 4 ? INT32_MIN : INT64_MIN;
        else if (!fits(items[i], size, &value)) return NULL;
        memcpy(at, &value, size);
    }
    return at;
}

static char *put_lists(const Said *said, char *at) {
    for (int i = 0; i < said->list_count && at; i++) {
        if (said->list[i]) {
            at = put_list(said->list[i], said->list_size[i], at);
        } else {
            memcpy(at, said->view[i].buf, said->view[i].len);
            at += said->view[i].len;
        }
    }
    return at;
}

static long long size_of(const Said *said) {
    long long ones = 0, lists = 0;
    for (int i = 0; i < said->one_count; i++) ones += said->one_size[i];
    for (int i = 0; i < said->list_count; i++) lists += said->list_size[i];
    ones = (HEADER_SIZE + ones + 7) & ~7LL;
    return (ones + lists * (said->n < 0 ? 0 : said->n) + 7) & ~7LL;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Write and commit a record. Its order, or NULL without an error: nothing was written. */
static PyObject *publish(Ring *ring, const Said *said, long op) {
    long long size = size_of(said), end = ring->end + size;
    if (end > layout.segment_size) return NULL;
    char *begin = (char *)ring->bytes.buf + ring->end;
    char *at = pad(begin, put_ones(said, begin + HEADER_SIZE));
    at = put_lists(said, at);
    if (!at) return NULL;
    pad(begin, at);
    PyObject *order = Py_TYPE(ring->orders)->tp_iternext(ring->orders);
    if (!order) return NULL;
    uint64_t n = said->n < 0 ? 1 : (uint64_t)said->n;
    uint64_t head[5] = {
        ((uint64_t)size | (uint64_t)op << 24) << 32,
        (uint64_t)ring->seq,
        (uint64_t)PyLong_AsLongLong(order),
        (uint64_t)now_ns(),
        said->ones | (uint64_t)said->lists << 32 | n << 48,
    };
    memcpy(begin, head, sizeof head);
    uint32_t crc = ~crc32_more(CRC_BEGIN, (unsigned char *)begin, (size_t)size);
    memcpy(begin, &crc, sizeof crc);
    ring->end = end;
    ring->seq += (long long)n;
    int64_t *words = ring->bytes.buf;
    int64_t commit = ((ring->seq - ring->first) << layout.commit_shift) + end;
    __atomic_store_n(&words[layout.commit_word], commit, __ATOMIC_RELEASE);
    return order;
}

static const Site *site_of(PyObject *names) {
    Site *site = &sites[((uintptr_t)names >> 4) & (SITES - 1)];
    if (site->names == names) return site;
    int argument_of[COLUMNS_MAX];
    for (int c = 0; c < layout.column_count; c++) argument_of[c] = -1;
    for (Py_ssize_t a = 0; a < PyTuple_GET_SIZE(names); a++) {
        int c = 0;
        while (c < layout.column_count &&
               PyUnicode_Compare(layout.columns[c].name, PyTuple_GET_ITEM(names, a)))
            c++;
        if (c == layout.column_count) return NULL;
        argument_of[c] = (int)a;
    }
    Py_XSETREF(site->names, Py_NewRef(names));
    site->count = 0;
    for (int c = 0; c < layout.column_count; c++) {
        if (argument_of[c] < 0) continue;
        site->column[site->count] = (unsigned char)c;
        site->argument[site->count++] = (unsigned char)argument_of[c];
    }
    return site;
}

static PyObject *speak(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    Ring *ring = mine.epoch == epoch ? mine.ring : NULL;
    long long op;
    Said said;
    if (ring && nargs == 1 && names && ring->map && !ring->busy && !ring->gap &&
        fits(args[0], 1, &op) && op < layout.op_codes) {
        const Site *site = site_of(names);
        PyObject *order = NULL;
        if (site) {
            if (gather(&said, site, args + 1)) order = publish(ring, &said, (long)op);
            let_views_go(&said);
        }
        if (order) return order;
        PyErr_Clear();
    }
    if (!layout.slowly) {
        PyErr_SetString(PyExc_RuntimeError, "the ring was not configured");
        return NULL;
    }
    return PyObject_Vectorcall(layout.slowly, args, (size_t)nargs, names);
}

/* The module ------------------------------------------------------------------------------------ */

static PyObject *attach(PyObject *module, PyObject *ring) {
    if (!PyObject_TypeCheck(ring, &RingType)) {
        PyErr_SetString(PyExc_TypeError, "a Ring is wanted");
        return NULL;
    }
    Py_XSETREF(mine.ring, (Ring *)Py_NewRef(ring));
    mine.epoch = epoch;
    Py_RETURN_NONE;
}

static PyObject *detach_all(PyObject *module, PyObject *nothing) {
    epoch++;
    Py_RETURN_NONE;
}

static PyObject *configure(PyObject *module, PyObject *args) {
    PyObject *columns, *slowly;
    if (!PyArg_ParseTuple(args, "O!LiiiO", &PyTuple_Type, &columns, &layout.segment_size,
                          &layout.commit_word, &layout.commit_shift, &layout.op_codes, &slowly))
        return NULL;
    if (PyTuple_GET_SIZE(columns) > COLUMNS_MAX) {
        PyErr_SetString(PyExc_ValueError, "more columns than the ring has room for");
        return NULL;
    }
    layout.column_count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(columns); i++) {
        Column *column = &layout.columns[i];
        PyObject *name;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(columns, i), "UIii", &name, &column->bit,
                              &column->size, &column->listable))
            return NULL;
        Py_XSETREF(column->name, Py_NewRef(name));
        layout.column_count++;
    }
    Py_XSETREF(layout.slowly, Py_NewRef(slowly));
    for (int i = 0; i < SITES; i++) Py_CLEAR(sites[i].names);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"speak", (PyCFunction)(void (*)(void))speak, METH_FASTCALL | METH_KEYWORDS,
     "What `probe.emit` is while the calling thread has a Ring."},
    {"attach", attach, METH_O, "From now on the calling thread speaks through this Ring."},
    {"detach_all", detach_all, METH_NOARGS, "From now on no thread has a Ring."},
    {"configure", configure, METH_VARARGS,
     "(columns, segment size, commit word, commit shift, op codes, what takes all other calls)"},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "ring", "The compiled way of `probe.emit`.", -1, methods,
};

PyMODINIT_FUNC PyInit_ring(void) {
    crc32_prepare();
    if (PyType_Ready(&RingType) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (PyModule_AddObjectRef(module, "Ring", (PyObject *)&RingType) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
