/* Breadth-first search of a graph with four edges a node. */
#include <stdio.h>
#define NODES 4000

static int edge[NODES][4], depth[NODES], queue[NODES];

__attribute__((noinline)) static int search(int root) {
    int head = 0, tail = 0;
    for (int i = 0; i < NODES; i++) depth[i] = -1;
    queue[tail++] = root;
    depth[root] = 0;
    while (head < tail) {
        int node = queue[head++];
        for (int e = 0; e < 4; e++) {
            int next = edge[node][e];
            if (depth[next] < 0) {
                depth[next] = depth[node] + 1;
                queue[tail++] = next;
            }
        }
    }
    return depth[queue[tail - 1]];
}

int main(void) {
    unsigned seed = 7;
    for (int i = 0; i < NODES; i++)
        for (int e = 0; e < 4; e++) {
            seed = seed * 1664525u + 1013904223u;
            edge[i][e] = e ? (int)(seed >> 8) % NODES : (i + 1) % NODES;
        }
    printf("bfs %d %d\n", search(0), search(NODES / 2));
    return 0;
}
