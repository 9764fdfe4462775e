/* Finds and checks the records of a segment: `segment.walk`, compiled, without the GIL. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "crc.h"

#define HEADER_SIZE 40
#define SIZE_MASK 0xFFFFFF

/* A record's checksum is that of its bytes with the checksum itself zero. */
static int is_whole(const unsigned char *record, size_t size, uint32_t crc) {
    unsigned char head[HEADER_SIZE];
    memcpy(head, record, HEADER_SIZE);
    memset(head, 0, sizeof crc);
    uint32_t found = crc32_more(CRC_BEGIN, head, HEADER_SIZE);
    return ~crc32_more(found, record + HEADER_SIZE, size - HEADER_SIZE) == crc;
}

/* Offsets of whole records go to `good`, of changed ones to `bad`; where it could go no further. */
static Py_ssize_t walk_bytes(const unsigned char *data, Py_ssize_t length, int64_t *good,
                             Py_ssize_t *good_count, int64_t *bad, Py_ssize_t *bad_count) {
    Py_ssize_t at = 0;
    while (at + HEADER_SIZE <= length) {
        uint32_t head[2];
        memcpy(head, data + at, sizeof head);
        Py_ssize_t size = head[1] & SIZE_MASK;
        if (size < HEADER_SIZE || size % 8 || at + size > length) break;
        if (is_whole(data + at, (size_t)size, head[0])) good[(*good_count)++] = at;
        else bad[(*bad_count)++] = at;
        at += size;
    }
    return at;
}

static PyObject *walk(PyObject *module, PyObject *data) {
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    Py_ssize_t most = view.len / HEADER_SIZE + 1, good_count = 0, bad_count = 0, at;
    int64_t *good = PyMem_Malloc(2 * most * sizeof *good);
    if (!good) {
        PyBuffer_Release(&view);
        return PyErr_NoMemory();
    }
    int64_t *bad = good + most;
    Py_BEGIN_ALLOW_THREADS
    at = walk_bytes(view.buf, view.len, good, &good_count, bad, &bad_count);
    Py_END_ALLOW_THREADS
    PyObject *found = Py_BuildValue("y#y#n", (char *)good, good_count * sizeof *good, (char *)bad,
                                    bad_count * sizeof *bad, at);
    PyMem_Free(good);
    PyBuffer_Release(&view);
    return found;
}

static PyMethodDef methods[] = {
    {"walk", walk, METH_O,
     "Of records: offsets of the whole and of the changed ones, as int64, and where they end."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "walk", "Finds and checks the records of a segment.", -1, methods,
};

PyMODINIT_FUNC PyInit_walk(void) {
    crc32_prepare();
    return PyModule_Create(&definition);
}
